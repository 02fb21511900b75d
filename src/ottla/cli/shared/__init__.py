"""What all commands share: options, the connection, output, refusals."""
