# SPDX-License-Identifier: Apache-2.0
"""What a gateway's limiters were told, and since which revision each object has been in it as it is now.

Owns the meaning of revisions across restarts and other people's edits: they only rise, equal content keeps its
revision, and an object waits for the revision that brought it, not for those that its neighbours' edits bring later.
Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from weir_operator.domain.attachment import Group
from weir_operator.domain.overriding import Override
from weir_operator.domain.ruleset import Policy, Ruleset
from weir_operator.reconcile.ports import AppliedRuleset, LimiterReport
from weir_operator.render.ruleset_config import BELIEVED, Live

Piece = Policy | Override
PieceKey = tuple[type[Piece], str]


@dataclass(frozen=True, slots=True)
class Publication:
    """A published ruleset and the revisions that brought its pieces."""

    live: Live
    pieces: Mapping[PieceKey, Piece]
    since: Mapping[PieceKey, int]

    def revision_of(self, key: PieceKey, wanted: Piece | None) -> int | None:
        """Return the revision that a limiter must have to run `wanted`; None if that is not published."""
        published = self.pieces.get(key)
        if wanted is None or published is None:
            return self.live.revision if wanted is published else None
        return self.since[key] if published is wanted or published == wanted else None


def pieces_of(ruleset: Ruleset) -> dict[PieceKey, Piece]:
    """Return a ruleset's parts by the object that each was compiled from."""
    return dict(_pieces(ruleset))


def owners_of(group: Group) -> dict[PieceKey, str]:
    """Return the uid of the object behind each possible piece."""
    owners: dict[PieceKey, str] = {(Policy, policy.meta.id): policy.meta.uid for policy in group.policies}
    return owners | {(Override, override.meta.id): override.meta.uid for override in group.overrides}


def without_replaced(ruleset: Ruleset, before: Mapping[PieceKey, str], now: Mapping[PieceKey, str]) -> Ruleset:
    """Return a ruleset without the pieces whose object was deleted and gave its name to another one."""

    def stays(piece: Piece) -> bool:
        key = type(piece), piece.id
        return key not in before or key not in now or before[key] == now[key]

    return replace(
        ruleset,
        policies=tuple(policy for policy in ruleset.policies if stays(policy)),
        overrides=tuple(override for override in ruleset.overrides if stays(override)),
    )


def advance(previous: Publication | None, live: Live) -> Publication:
    """Return the publication after `live` was published: unchanged pieces keep their revision.

    Without `previous` every piece waits for `live`. So it must be after somebody else's document, which no longer had
    the pieces, perhaps: a limiter that is stuck on that one runs a revision above theirs.
    """
    pieces = pieces_of(live.ruleset) if live.ruleset is not None else {}
    since = {}
    for key, piece in pieces.items():
        before = previous.pieces.get(key) if previous is not None else None
        unchanged = before is piece or before == piece
        since[key] = previous.since[key] if previous is not None and unchanged else live.revision
    return Publication(live, pieces, since)


def base_of(seen: Live, remembered: Live | None, running: int) -> Live:
    """Return what the next document must be compared with and come after.

    `seen` is read from the ConfigMap, `remembered` is what this process published last, `running` the highest revision
    that any limiter runs (0 = unknown). A ConfigMap that was deleted comes back as it was; one that was edited gets a
    new revision, because a limiter that started meanwhile may have taken the edit under the old one.
    """
    memory = remembered or Live()
    revision = max(seen.revision, memory.revision, running)
    deleted = seen == Live()
    digest = memory.digest if deleted else seen.digest
    told = memory if deleted else seen
    edited = remembered is not None and not deleted and seen.digest != memory.digest
    keeps = not edited and told.revision == revision
    return Live(revision, digest if keeps else "", memory.ruleset or seen.ruleset)


def running_revision(reports: Iterable[LimiterReport], ruleset_name: str, live: Live) -> int:
    """Return the highest revision that any limiter says it runs, 0 if none says any.

    One that runs something else under the revision of `live` counts as one ahead: it would never take `live`.
    """
    found = (report.rulesets[ruleset_name] for report in reports if ruleset_name in report.rulesets)
    believed = (applied for applied in found if 0 < applied.revision < BELIEVED)
    return max((applied.revision + _is_another(applied, live) for applied in believed), default=0)


def _is_another(applied: AppliedRuleset, live: Live) -> bool:
    return applied.revision == live.revision and applied.digest != live.digest


def _pieces(ruleset: Ruleset) -> Iterator[tuple[PieceKey, Piece]]:
    for policy in ruleset.policies:
        yield (Policy, policy.id), policy
    for override in ruleset.overrides:
        yield (Override, override.id), override
