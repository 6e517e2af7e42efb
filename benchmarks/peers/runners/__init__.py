"""One module for each library, run by the interpreter of that library's own environment."""
