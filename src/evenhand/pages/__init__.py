"""Everything that becomes HTML or a picture: releases, plans, model cards, simulations; one style."""
