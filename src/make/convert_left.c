/*
 * The contents of files are listed in their trees (format/cells_tree.c): paths
 * and kinds. A matrix is copied if every file has it, with the same width, and
 * it can be read; names with a comma cannot be requested.
 */
#include "make/convert_left.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "format/cells/cells.h"

#define MOST_LIST 60000u /* bytes of an option */

/* ---- the list ---- */

void pen__left_fini(struct pen_left *l)
{
	for (uint32_t i = 0; i < l->n; i++)
		pen__buf_fini(&l->of[i].name);
	*l = (struct pen_left){ 0 };
}

const char *pen__left_next(const struct pen_left_kind *k, const char *after)
{
	const char *p = (const char *)k->name.p, *end = p + k->name.n;

	if (!k->n)
		return NULL;
	if (after && *after)
		p = after + strlen(after) + 1;
	return p < end ? p : NULL;
}

static struct pen_left_kind *kind_of(struct pen_left *l, const char *kind)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (strcmp(l->of[i].kind, kind) == 0)
			return &l->of[i];
	if (l->n == PEN_LEFT_KINDS)
		return &l->of[l->n - 1];
	snprintf(l->of[l->n].kind, sizeof(l->of[l->n].kind), "%s",
		 l->n == PEN_LEFT_KINDS - 1 ? "others" : kind);
	return &l->of[l->n++];
}

void pen__left_add(struct pen_left *l, const char *kind, struct pen_span name)
{
	struct pen_left_kind *k = kind_of(l, kind);

	for (const char *s = ""; (s = pen__left_next(k, s));)
		if (strlen(s) == name.n && memcmp(s, name.p, name.n) == 0)
			return;
	if (!name.n || memchr(name.p, 0, name.n))
		name = (struct pen_span){ (const uint8_t *)"?", 1 };
	pen__buf_put(&k->name, name.p, name.n);
	pen__buf_le(&k->name, 0, 1);
	k->n++;
	l->bad |= k->name.bad;
}

/* ---- trees ---- */

struct entry {
	struct pen_span path, kind;
};

static bool next_entry(struct pen_bytes *b, struct entry *e)
{
	return pen__cells_next_name(b, &e->path) &&
	       pen__cells_next_name(b, &e->kind);
}

static bool find_entry(const struct pen_cells_view *v, struct pen_span path,
		       struct entry *e)
{
	struct pen_bytes b = pen__bytes(v->tree.p, v->tree.n);

	while (next_entry(&b, e))
		if (pen__cells_compare(e->path, path) == 0)
			return true;
	return false;
}

static bool begins(struct pen_span s, const char *with)
{
	const size_t n = strlen(with);

	return s.n >= n && memcmp(s.p, with, n) == 0;
}

/* "50" of "float32 700x50"; "" if sparse. */
static struct pen_span width_of(struct pen_span kind)
{
	size_t at = kind.n;

	while (at && kind.p[at - 1] >= '0' && kind.p[at - 1] <= '9')
		at--;
	return (struct pen_span){ kind.p + at, kind.n - at };
}

/* "layers/a": kind layers, name a. A path without a slash is a kind itself. */
static void leave(struct pen_left *l, struct pen_span path)
{
	const uint8_t *slash = memchr(path.p, '/', path.n);
	const size_t n = slash ? (size_t)(slash - path.p) : path.n;
	char kind[24];

	snprintf(kind, sizeof(kind), "%.*s", n < 23 ? (int)n : 23,
		 (const char *)path.p);
	if (begins(path, "raw.")) {
		snprintf(kind, sizeof(kind), "raw");
		slash = path.p + 3;
	}
	if (slash)
		path = (struct pen_span){
			slash + 1, path.n - (size_t)(slash + 1 - path.p)
		};
	else
		snprintf(kind, sizeof(kind), "others");
	pen__left_add(l, kind, path);
}

/* ---- matrices ---- */

static bool is_extra(struct pen_span path)
{
	return begins(path, "layers/") || begins(path, "obsm/");
}

static bool is_everywhere(const struct pen_cells *p, const struct entry *e)
{
	const bool layer = begins(e->path, "layers/");
	struct entry o;

	for (uint64_t i = 0; i < p->nviews; i++) {
		if (!p->view[i].matrix)
			continue;
		if (!find_entry(&p->view[i], e->path, &o) ||
		    !pen__cells_is_matrix(o.path, o.kind))
			return false;
		/* layers have genes as columns, which are joined */
		if (!layer && pen__cells_compare(width_of(o.kind),
						 width_of(e->kind)) != 0)
			return false;
	}
	return true;
}

void pen__left_choose(struct pen_left *l, const struct pen_cells *p,
		      struct pen_text *list)
{
	struct pen_bytes b = pen__bytes(p->view0->tree.p, p->view0->tree.n);
	uint32_t n = 1;
	struct entry e;

	while (next_entry(&b, &e)) {
		if (!is_extra(e.path))
			continue;
		if (!pen__cells_is_matrix(e.path, e.kind) ||
		    !is_everywhere(p, &e) || e.path.n > 255 ||
		    memchr(e.path.p, ',', e.path.n) ||
		    memchr(e.path.p, 0, e.path.n) || n == PEN_CELLS_MATRICES ||
		    list->n + e.path.n > MOST_LIST) {
			leave(l, e.path);
			continue;
		}
		pen__text_add(list, ",%.*s", (int)e.path.n,
			      (const char *)e.path.p);
		n++;
	}
	l->bad |= list->failed;
}

static bool is_column(struct pen_span path)
{
	return begins(path, "obs/") || begins(path, "var/") ||
	       begins(path, "raw/var/") || begins(path, "raw.var/");
}

void pen__left_rest(struct pen_left *l, const struct pen_cells *p, bool chosen)
{
	struct entry e, o;

	for (uint64_t i = 0; i < p->nviews; i++) {
		const struct pen_cells_view *v = &p->view[i];
		struct pen_bytes b = pen__bytes(v->tree.p, v->tree.n);

		while (v->matrix && next_entry(&b, &e)) {
			if (is_column(e.path) ||
			    (e.path.n == 1 && *e.path.p == 'X') ||
			    (chosen &&
			     (is_extra(e.path) || begins(e.path, "raw"))))
				continue;
			/* those of the first file are already handled */
			if (is_extra(e.path) &&
			    find_entry(p->view0, e.path, &o))
				continue;
			leave(l, e.path);
		}
	}
}

/* ---- columns ---- */

static bool is_taken(const struct pen_cells *p, bool obs, struct pen_span name)
{
	const struct pen_cells_field *c = obs ? p->view0->field : p->vars;
	const uint32_t n = obs ? p->nobs : p->nvars;

	for (uint32_t i = 0; i < n; i++)
		if (pen__cells_compare(c[i].name, name) == 0)
			return true;
	return false;
}

void pen__left_columns(struct pen_left *l, const struct pen_cells *p, bool obs)
{
	static const char *const frames[] = { "var/", "raw/var/", "raw.var/" };
	const char *const *frame = frames;
	struct entry e;

	for (uint64_t i = 0; i < p->nviews; i++) {
		const struct pen_cells_view *v = &p->view[i];
		const struct pen_span index = obs ? v->obs_index : v->var_index;
		struct pen_bytes b = pen__bytes(v->tree.p, v->tree.n);

		/* var comes from the first file */
		if (!v->matrix || (!obs && v != p->view0))
			continue;
		while (next_entry(&b, &e)) {
			size_t n = obs && begins(e.path, "obs/") ? 4 : 0;

			for (int k = 0; !obs && k < 3; k++)
				if (begins(e.path, frame[k]))
					n = strlen(frame[k]);
			if (!n)
				continue;
			e.path.p += n;
			e.path.n -= n;
			if (pen__cells_compare(e.path, index) != 0 &&
			    !is_taken(p, obs, e.path))
				pen__left_add(l, obs ? "obs" : "var", e.path);
		}
	}
}
