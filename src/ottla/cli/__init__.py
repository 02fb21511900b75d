"""The command ``ottla``: one module a command, none imported before it is needed."""
