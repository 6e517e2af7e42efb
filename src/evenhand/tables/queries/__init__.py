"""SELECT as text: parsed, and turned into views, which judge it."""
