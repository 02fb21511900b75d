"""One module a page: what it shows, as a struct that the template and the JSON twin both get."""
