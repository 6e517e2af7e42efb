"""Other libraries and Evenhand on the same tables, each really run."""
