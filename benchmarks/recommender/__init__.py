"""Speed of the recommender's server."""
