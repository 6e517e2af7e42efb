"""What is believed about people before anything is measured: how users by contribution go on from one bucket to the next.

All are guesses about tables, judged by `benchmarks/accuracy/same_seeds.py`; none is read off the table that is asked about.
"""

from __future__ import annotations

MISS = 0.1
"""By which part of itself a bucket may hold more or fewer users than a smooth table would, besides chance."""

INSIDE, ALIKE, ALIKE_INSIDE = 0.1, 0.1, 0.3
"""The mean of a bucket's users lies off where the slope says by this part of the bucket's width; in one table of ten, where people are alike, and in the last bucket
that is visible, where a table may end, by the larger part."""

BEND, WILD, WILDLY = 0.18, 0.3, 0.6
"""By how much the slope, in logarithms of users from one bucket to the next, changes at each bucket; at one of three by as much as `WILDLY`, or far more."""

DOWN, STEEPEN, MODERATE = 0.04, 0.25, -0.7
"""Slopes bend down by this much at each bucket, more where they are flatter than `MODERATE`: tails grow steeper, and a law without a mean is rare."""

FLATTEST = -0.2
"""No sudden change makes a slope flatter than this: nothing rises again but a crowd apart."""

END = 0.04
"""Nobody lies above a bucket: a shop sells at most ten to a customer."""

JUMP = 0.002
"""From a bucket to the next, everything changes."""

CROWD, WIDER, MANY = 0.0004, 0.5, 15.0
"""A crowd apart begins at a bucket where nobody else is (robots), and goes on into the next with the second probability. There are one noise scale up to `MANY` of its users in each: more
would stand out, fewer can't be told."""

BEGIN, BEGIN_FIRST = 0.43, 0.5
"""Users begin at the first bucket, or at one of those above what is usual for a user: without evidence people contribute little."""

TOO_WIDE = 0.2
"""Below one row's largest value there are buckets down to a millionth of it: what is usual for a user is taken to lie this far down, in logarithms."""

FEWEST, LEAST = 0.3, 0.1
"""Expected users of a bucket, at least: where anybody begins (as many as the noise's scale, where nobody is visible: who they are is not known, and they may be that many); and
where a tail is followed to."""

FARTHEST = 18
"""How many buckets beyond the last visible one users may lie: four thousand times what is seen."""

CHOOSES = 0.09
"""Of the belief, that crowds apart have at most where a bound is chosen: one at a crowd that is not there multiplies the noise. It has to be visible for that."""

TRIMMED = 0.9
"""The part of all tables whose squared loss counts where a bound is chosen: no bound guards against a single giant."""

SURE = 0.25
"""The part of the belief on the other side of a correction: a light tail and a heavy one that can't be told apart differ by far more in what
the heavy one hides than in what the light one does, so half way between them is wrong for both."""

HIDES = 8.0
"""Users, in scales of the noise, who may lie far above all others without being noticed."""
