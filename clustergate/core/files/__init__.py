"""Files that are whole or not there, and YAML that knows its lines."""
