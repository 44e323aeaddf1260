"""Run a Python function ahead of the consumer, in one thread.

The order is preserved, at most `depth` results wait, and an exception is raised
in place of its batch. The thread refers to the engine and not to the loader, so
that an unused loader can be collected.
"""
import threading
from _queue import SimpleQueue

DONE, FAILED, READY = range(3)


def _produce(take, fn, items, tokens, stop):
    while True:
        tokens.get()
        if stop:    # a consumer that continues anyway must not hang
            items.put((FAILED, ValueError("the loader is closed"), None))
            return
        try:
            batch = take()
            if batch is None:
                items.put((DONE, None, None))
                return
            at = batch.epoch, batch.end
            out = fn(batch)
        except BaseException as error:  # raised in place of its batch
            items.put((FAILED, error, None))
            return
        items.put((READY, out, at))
        batch = out = None


class Ahead:
    def __init__(self, take, fn, depth):
        self._items = SimpleQueue()
        self._tokens = SimpleQueue()
        self._stop = []
        for _ in range(depth):
            self._tokens.put(None)
        self._thread = threading.Thread(
            target=_produce, name="penstock-transform", daemon=True,
            args=(take, fn, self._items, self._tokens, self._stop))
        self._thread.start()

    def next(self):
        """(READY, result, position to resume from) or (DONE, None, None)."""
        kind, out, at = self._items.get()
        if kind == FAILED:
            raise out
        if kind == READY:
            self._tokens.put(None)
        return kind, out, at

    def stop(self):
        """Do not wait: the function may take long."""
        self._stop.append(True)
        self._tokens.put(None)

    def join(self):
        self.stop()
        if self._thread is not threading.current_thread():
            self._thread.join()
