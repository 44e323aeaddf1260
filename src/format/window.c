/*
 * A window over an object. It grows to the size requested, never beyond the
 * object, and is read again from the requested position if that is not in it:
 * made for reading forward only.
 */
#include "format/window.h"

#include "base/mem.h"

const uint8_t *pen__window_get(struct pen_window *w, uint64_t off, size_t n,
			       size_t ahead, struct pen_err *err)
{
	const uint64_t rest = w->pk->size - off;
	size_t want;

	if (off >= w->at && off - w->at <= w->len &&
	    n <= w->len - (off - w->at))
		return w->buf + (off - w->at);
	if (!pen__add(n, ahead, &want) || want > rest)
		want = (size_t)rest;
	if (want > w->cap) {
		void *p = pen__realloc(w->buf, want, 1);

		if (!p) {
			pen__fail_nomem(err, w->pk->name, want);
			return NULL;
		}
		w->buf = p;
		w->cap = want;
	}
	w->len = 0;
	if (w->pk->read(w->pk, off, w->buf, want, err))
		return NULL;
	w->at = off;
	w->len = want;
	return w->buf;
}

void pen__window_fini(struct pen_window *w)
{
	pen__free(w->buf);
	*w = (struct pen_window){ 0 };
}
