"""Accuracy of the bounds that Evenhand chooses, against an oracle and against what others advise."""
