"""Where Ottla's answers differ from Apache's on purpose, each with its reason. Case and path are patterns."""

from __future__ import annotations

from support.differential.compare import Allowed


def allowed_differences() -> list[Allowed]:
    """A fresh list: it counts how often each entry was needed."""
    return [
        Allowed(
            case=r"api versions .*|.*version of the future.*|.*version minus 1 of API_VERSIONS.*",
            path=r"\.api_keys\.(58|68|69)",
            reason="Envelope and the new group protocol are not spoken, so they are not advertised",
        ),
        Allowed(
            case=r".*",
            path=r".*error_message",
            reason="texts are for people and in our own words; the codes beside them are compared",
        ),
        Allowed(
            case=r"produce null records: ProduceRequest v9",
            path="",
            reason="Apache's handler dies and never answers; Ottla answers INVALID_RECORD",
        ),
        Allowed(
            case=r"produce in the old version [012]: .*",
            path=r".*(error_code|base_offset|offset)",
            reason="formats before magic 2 are not spoken, so Produce 0-2 is answered UNSUPPORTED_VERSION",
        ),
        Allowed(
            case=r"fetch in version [0123]: .*",
            path=r".*(error_code|high_watermark|records\..*)",
            reason="formats before magic 2 are not spoken, so Fetch 0-3 is answered UNSUPPORTED_VERSION",
        ),
        Allowed(
            case=r"produce a batch with records that are noise: .*",
            path=r".*\.error_code",
            reason="Apache's parser dies with UNKNOWN_SERVER_ERROR; Ottla answers INVALID_RECORD",
        ),
        Allowed(
            case=r"fetch at most bytes .*",
            path=r".*\.records\.bytes behind",
            reason="Apache cuts the last batch anywhere and clients drop the piece; Ottla sends whole ones",
        ),
    ]
