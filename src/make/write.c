/*
 * Writes one object from a format's writer to a store. Side files (the index of
 * an indexed_binary) are separate sinks, committed before their object, so that
 * no object is ever visible without them.
 */
#include "make/write.h"

#include <stdio.h>

#define MAX_SIDES 4

struct sink {
	struct pen_out out; /* must be first: write() gets it */
	const struct pen_write *w;
	struct pen_sink *sink;
	struct sink *sides;
	unsigned nsides;
};

static int put(struct pen_out *o, const void *p, size_t n, struct pen_err *err)
{
	struct sink *s = (struct sink *)o;
	int rc = s->w->step ? s->w->step(s->w->arg, n, err) : 0;

	return rc ? rc : pen__sink_write(s->sink, p, n, err);
}

static int patch(struct pen_out *o, uint64_t at, const void *p, size_t n,
		 struct pen_err *err)
{
	struct pen_sink *k = ((struct sink *)o)->sink;

	return k->st->ops->sink_patch(k, at, p, n, err);
}

static struct pen_out *side(struct pen_out *o, const char *suffix,
			    struct pen_err *err)
{
	struct sink *s = (struct sink *)o, *t = &s->sides[s->nsides];
	const char *elsewhere = s->w->side_path;
	char path[4096];
	int n = snprintf(path, sizeof(path), "%s%s",
			 elsewhere ? elsewhere : s->w->path,
			 elsewhere ? "" : suffix);

	if (s->nsides == (elsewhere ? 1 : MAX_SIDES) || n < 0 ||
	    (size_t)n >= sizeof(path)) {
		pen__fail(err, P_TOO_LONG, s->w->path,
			  "too many side files, or the name is too long");
		return NULL;
	}
	*t = (struct sink){ .out.write = put, .w = s->w };
	if (pen__sink_open(&t->sink, s->w->st, path, err))
		return NULL;
	s->nsides++;
	return &t->out;
}

int pen__write_object(const struct pen_write *w, const struct pen_format *f,
		      const struct pen_table *t, struct pen_err *err)
{
	struct sink sides[MAX_SIDES];
	struct sink s = { .out = { .write = put,
				   .side = side,
				   .patch = w->st->ops->sink_patch ? patch
								   : NULL },
			  .w = w,
			  .sides = sides };
	int rc = pen__sink_open(&s.sink, w->st, w->path, err), end;

	if (rc)
		return rc;
	rc = f->ops->write(f, t, &s.out, err);
	/* detect a full disk before the first of them gets its name */
	if (rc >= 0 && s.nsides && s.out.patch)
		rc = patch(&s.out, 0, "", 0, err);
	for (unsigned i = 0; i < s.nsides && rc >= 0 && s.out.patch; i++)
		rc = patch(&sides[i].out, 0, "", 0, err);
	for (unsigned i = 0; i < s.nsides; i++) {
		end = pen__sink_close(sides[i].sink, rc >= 0,
				      rc >= 0 ? err : NULL);
		rc = rc < 0 ? rc : end;
	}
	end = pen__sink_close(s.sink, rc >= 0, rc >= 0 ? err : NULL);
	return rc < 0 ? rc : end;
}
