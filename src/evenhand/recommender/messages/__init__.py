"""What crosses the trust boundary: the task, the token, the query, the report and the published model.

These types are all that `at_home` and `at_server` share. Each is immutable and versioned, and is written both
as JSON (for people) and as bytes (for wires); ``docs/recommender/wire-format.md`` gives every byte. What is read
and is not exactly such a message is a `MessageError`, on either side.
"""

from evenhand.guarantee import MessageError
from evenhand.recommender.messages.exchange import RECORD_SIZE, Query, Report, Token
from evenhand.recommender.messages.model import PublishedModel
from evenhand.recommender.messages.promise import LocalGuarantee
from evenhand.recommender.messages.task import SENSING, SKETCHES, Task
from evenhand.recommender.messages.wire import VERSION

__all__ = [
    "RECORD_SIZE",
    "SENSING",
    "SKETCHES",
    "VERSION",
    "LocalGuarantee",
    "MessageError",
    "PublishedModel",
    "Query",
    "Report",
    "Task",
    "Token",
]
