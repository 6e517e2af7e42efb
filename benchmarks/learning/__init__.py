"""Models against others (`comparison`); speed of the regression weights and of weighted ERM (`__main__`)."""
