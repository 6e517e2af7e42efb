"""What crosses the trust boundary: the task, the token, the query, the report and the published model.

These types are all that `at_home` and `at_server` share. Each is immutable and versioned, and is written both
as JSON (for people) and as bytes (for wires); ``docs/recommender/wire-format.md`` gives every byte. What is read
and is not exactly such a message is a `MessageError`, on either side. The list of sketches is here too, as both
sides read it.
"""

from evenhand.guarantee import MessageError
from evenhand.recommender.messages.exchange import RECORD_SIZE, Query, Report, Token
from evenhand.recommender.messages.groups import Groups
from evenhand.recommender.messages.model import PublishedModel
from evenhand.recommender.messages.sketches import DEFAULT_SKETCH, SKETCHES, Sketch, find_sketch, load_half
from evenhand.recommender.messages.task import LocalGuarantee, Task
from evenhand.recommender.messages.wire import VERSION

__all__ = [
    "DEFAULT_SKETCH",
    "RECORD_SIZE",
    "SKETCHES",
    "VERSION",
    "Groups",
    "LocalGuarantee",
    "MessageError",
    "PublishedModel",
    "Query",
    "Report",
    "Sketch",
    "Task",
    "Token",
    "find_sketch",
    "load_half",
]
