"""What is exported: figures with bounded labels, and events without anybody's words."""
