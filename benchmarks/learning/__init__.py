"""Speed of the regression weights against a general solver, and of weighted ERM."""
