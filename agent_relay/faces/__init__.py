"""What people and programs see: the command line, the relay shell, live views and exports."""
