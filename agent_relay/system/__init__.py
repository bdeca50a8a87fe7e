"""What touches the machine: processes, files, sockets, git."""
