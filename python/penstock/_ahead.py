"""A Python function that runs ahead of the consumer, in one thread.

Order is kept, at most `depth` results wait, and an exception comes out where
its batch would have. The thread knows the engine and not the loader, so that a
loader that is dropped can go.
"""
import threading
from _queue import SimpleQueue

DONE, FAILED, READY = range(3)


def _produce(take, fn, items, tokens, stop):
    while True:
        tokens.get()
        if stop:    # who goes on regardless must not wait for ever
            items.put((FAILED, ValueError("the loader is closed"), None))
            return
        try:
            batch = take()
            if batch is None:
                items.put((DONE, None, None))
                return
            at = batch.epoch, batch.end
            out = fn(batch)
        except BaseException as error:  # is raised at its batch
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
        """(READY, result, where to resume), or (DONE, None, None)."""
        kind, out, at = self._items.get()
        if kind == FAILED:
            raise out
        if kind == READY:
            self._tokens.put(None)
        return kind, out, at

    def stop(self):
        """Does not wait: the function may take long."""
        self._stop.append(True)
        self._tokens.put(None)

    def join(self):
        self.stop()
        if self._thread is not threading.current_thread():
            self._thread.join()
