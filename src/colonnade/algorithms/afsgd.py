"""AFSGD-VP, AFSVRG-VP and AFSAGA-VP: Algorithms 3, 4 and 5 of Gu, Xu, Huo, Deng and Huang (2021).

One loop for the three: they differ in the estimator, which says what a row's slope is corrected by and when all rows
must be scored. The synchronous twins FSGD-VP, FSVRG-VP and FSAGA-VP run the same loop at the coordinator alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from colonnade.algorithms.party import Party


async def train(party: Party) -> None:
    await party.sweep_if_due()  # Algorithm 4, line 3; Algorithm 5, line 2
    async for rows in party.batches():  # line 3: pick rows at random
        scores = await party.total(rows)  # lines 4–5: Algorithm 1 or 2
        slopes = party.loss.slopes(scores, party.labels[rows])
        await party.share(rows, slopes, scores)
        await party.step(rows, slopes)  # lines 6–7
        await party.sweep_if_due()
