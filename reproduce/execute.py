"""Runs one step: keeps what was measured before, measures the rest, writes the results file after each measurement."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import replace
from typing import Protocol

from reproduce import process, provenance, results, sampling
from reproduce.lock import lock, lock_gpu
from reproduce.machine import Need, cores
from reproduce.results import Document, Record
from reproduce.step import Context, FailedError, Measurement, NoRunError, NotMeasuredError, Step
from reproduce.tables import MEASURED, Table


class Progress(Protocol):
    """Told what happens, in order of completion; ``report.py`` has the implementations."""

    def kept(self, measurements: Sequence[Measurement], note: str) -> None: ...
    def finished(self, measurement: Measurement, record: Record) -> None: ...


def execute(step: Step, context: Context, progress: Progress) -> Document:
    """Brings ``results/<step>.json`` up to date and returns it.

    Records of an earlier run are kept if they were measured from the same sources, compiler and GPU, unless
    ``--fresh``. Raises LockedError if another run works on the same step or GPU, and KeyboardInterrupt after ending
    every child; what was measured until then is in the file.
    """
    with ExitStack() as stack:
        place = context.results / f".lock-{step.name}"
        elsewhere = "give this run its own folder with --results DIR"
        stack.enter_context(lock(place, f"results/{step.name}.json", instead=elsewhere))
        if step.uses(Need.GPU) and context.machine.gpu:
            held = stack.enter_context(lock_gpu(context.build, context.machine.gpu))
            context = replace(context, gpu_lock=held)
        return _execute(step, context, progress)


def _execute(step: Step, context: Context, progress: Progress) -> Document:
    started = time.monotonic()
    uses = {"with_gpu": step.uses(Need.GPU), "with_nvcc": step.uses(Need.NVCC)}
    document = Document(
        step.name,
        step.title,
        provenance.fingerprint(context.machine, context.choreo, **uses),
        provenance.describe(context.machine, context.choreo, **uses),
    )
    measurements = step.measurements(context)
    aside = results.set_aside(context.results, step.name)
    document.records, when, note = kept_records(step, context, document.fingerprint)
    if document.records:
        document.provenance["kept_from"] = when
    pending = [item for item in measurements if item.key not in document.records]
    progress.kept([item for item in measurements if item.key in document.records], aside or note)

    def store(item: Measurement, record: Record) -> None:
        document.records[item.key] = record
        document.provenance["duration_s"] = round(time.monotonic() - started, 3)
        document.tables = _tables(step, document, context)
        results.save(document, context.results)
        progress.finished(item, record)

    runnable = []
    for item in pending:
        reason = unmet(item, context)
        if reason:
            store(item, results.not_measured(reason))
        else:
            runnable.append(item)
    _measure(runnable, context, store)
    document.complete = all(item.key in document.records for item in step.measurements(context))
    document.tables = _tables(step, document, context)
    results.save(document, context.results)
    return document


def _tables(step: Step, document: Document, context: Context) -> tuple[Table, ...]:
    return tuple(table.only_timed_slowed() for table in step.tables(document.records, context))


def kept_records(
    step: Step, context: Context, fingerprint: str | None = None
) -> tuple[dict[str, Record], str | None, str]:
    """The records of the file that is there which a run keeps, when the oldest was measured, and why none if that is
    strange.

    ``fingerprint``: the one of now, if it is known already.
    """
    if context.options.fresh:
        return {}, None, ""
    try:
        earlier = results.load(context.results, step.name)
    except results.ResultsError as error:
        return {}, None, f"{error}: measured again"
    if earlier is None:
        return {}, None, ""
    if fingerprint is None:
        uses = {"with_gpu": step.uses(Need.GPU), "with_nvcc": step.uses(Need.NVCC)}
        fingerprint = provenance.fingerprint(context.machine, context.choreo, **uses)
    if earlier.fingerprint != fingerprint:
        return {}, None, "sources, compiler or GPU changed since the last run: measured again"
    kept = {key: record for key, record in earlier.records.items() if record.status == MEASURED}
    oldest = min((record.when for record in kept.values()), default="")
    return kept, oldest or earlier.provenance.get("started"), ""


def unmet(item: Measurement, context: Context, assuming: Collection[Need] = ()) -> str | None:
    """Why this machine cannot make a measurement, None if it can; ``assuming``: what would be there by then."""
    for need in Need:
        if need in item.needs and need not in assuming:
            reason = context.machine.missing(need)
            if reason:
                return reason
    return None


def _measure(items: Iterable[Measurement], context: Context, store: _Store) -> None:
    """Parallel measurements first, over the cores, from the longest on, so that none is left alone at the end; then the
    others, one by one, with nothing beside them."""
    items = list(items)
    together = sorted((item for item in items if item.parallel), key=lambda item: -item.seconds)
    if together:
        pool = ThreadPoolExecutor(min(len(together), cores()))
        try:
            # An interrupt may come as soon as the first child runs, that is before the last one is submitted.
            futures: dict[Future[Record], Measurement] = {
                pool.submit(_attempt, item, context): item for item in together
            }
            while futures:
                done, _ = wait(futures, return_when=FIRST_COMPLETED)
                for future in done:
                    store(futures.pop(future), future.result())
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            process.end_all()
            raise
        finally:
            pool.shutdown()
    for item in items:
        if not item.parallel:
            store(item, _attempt(item, context))


class _Store(Protocol):
    def __call__(self, item: Measurement, record: Record) -> None: ...


def _attempt(item: Measurement, context: Context) -> Record:
    """One measurement, with its ending turned into a record; only an interrupt (or a bug of ours) goes through."""
    started, when, state = time.monotonic(), provenance.now(), None
    if item.timed and context.machine.gpu:
        with sampling.watch(context.machine.gpu.index) as watched:
            record = _outcome(item, context)
        state = watched.summary
    else:
        record = _outcome(item, context)
    log = context.log(item.key)
    return Record(
        record.status,
        record.values,
        record.reason,
        str(log.relative_to(context.results)) if log.exists() else None,
        round(time.monotonic() - started, 3),
        when,
        state,
    )


def _outcome(item: Measurement, context: Context) -> Record:
    try:
        return Record(MEASURED, item.run(context))
    except NoRunError as error:
        return results.no_run(str(error))
    except FailedError as error:
        return results.failed(str(error))
    except NotMeasuredError as error:
        return results.not_measured(str(error))
