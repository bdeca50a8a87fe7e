"""From facts to the packet document: what a successor has to know, quoted, without any model's help."""
