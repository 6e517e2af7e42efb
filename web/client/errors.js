// What can go wrong, by who has to do something about it. None of these depends on ratings.

/** A message is not exactly what the wire format says: it is damaged, altered or from another version. */
export class MessageError extends Error {}

/** This device declines, for a reason that is public: the task, the token, the person's limits or choices. */
export class Declined extends Error {}

/** This browser can't keep a diary, or its diary is damaged or gone. */
export class DiaryError extends Error {}

/** The campaign's server did not do what was asked. */
export class ServerError extends Error {}
