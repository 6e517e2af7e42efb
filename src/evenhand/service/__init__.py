"""The keeper's server: analysts ask over HTTP, the table stays with its keeper."""
