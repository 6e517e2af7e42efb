"""The pages of a keeper's server: forms, tables and pictures, no script. They take plain data, as the server's JSON has it."""
