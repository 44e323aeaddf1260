/*
 * The contents of a file of single cells as a list of paths: for messages that
 * suggest a matrix, and for copies that report what they omit. Frames are
 * excluded; pen__cells_columns_list() lists their columns.
 */
#include <stdio.h>

#include "format/cells/cells.h"

static bool begins(struct pen_span s, const char *with)
{
	const size_t n = strlen(with);

	return s.n >= n && memcmp(s.p, with, n) == 0;
}

static bool is(struct pen_span s, const char *text)
{
	return s.n == strlen(text) && begins(s, text);
}

static void put_path(struct pen_buf *out, const char *group,
		     struct pen_span name)
{
	const uint32_t n = (uint32_t)(strlen(group) + 1 + name.n);

	pen__buf_put(out, &n, 4);
	pen__buf_str(out, group);
	pen__buf_str(out, "/");
	pen__buf_put(out, name.p, name.n);
}

int pen__cells_tree_of(struct pen_cells_file *f, const char *group, bool frame,
		       struct pen_buf *out)
{
	struct pen_buf list = { 0 };
	struct pen_span name, kind;
	struct pen_bytes b;
	int rc = frame ? f->src->inventory(f, group, &list)
		       : f->src->children(f, group, &list);

	b = pen__bytes(list.p, list.n);
	while (rc >= 0 && pen__cells_next_name(&b, &name) &&
	       pen__cells_next_name(&b, &kind)) {
		/* the names of rows, if obsm is a single table */
		if (!frame && is(name, "index") && is(kind, "strings"))
			continue;
		put_path(out, group, name);
		pen__cells_put_text(out, kind.p, kind.n);
	}
	pen__buf_fini(&list);
	return rc;
}

int pen__cells_tree(struct pen_cells_file *f, struct pen_buf *out)
{
	static const char *const groups[] = { "layers", "obsm", "varm", "obsp",
					      "varp",	"uns",	"raw" };
	static const char *const frames[] = { "obs", "var", "raw.var",
					      "raw.varm" };
	struct pen_buf list = { 0 };
	struct pen_span name, kind;
	struct pen_bytes b;
	int rc = f->src->children(f, "", &list);

	b = pen__bytes(list.p, list.n);
	while (rc >= 0 && pen__cells_next_name(&b, &name) &&
	       pen__cells_next_name(&b, &kind)) {
		bool known = false;

		for (size_t i = 0; i < sizeof(frames) / sizeof(*frames); i++)
			known |= is(name, frames[i]);
		for (size_t i = 0;
		     rc >= 0 && i < sizeof(groups) / sizeof(*groups); i++)
			if (is(name, groups[i])) {
				known = true;
				rc = pen__cells_tree_of(f, groups[i], false,
							out);
			}
		if (known)
			continue;
		pen__cells_put_text(out, name.p, name.n);
		pen__cells_put_text(out, kind.p, kind.n);
	}
	pen__buf_fini(&list);
	if (rc >= 0 && out->bad)
		rc = pen__fail_nomem(f->err, f->name, out->n);
	return rc;
}

bool pen__cells_is_matrix(struct pen_span path, struct pen_span kind)
{
	bool sized = false;

	if (!is(path, "X") && !is(path, "raw/X") && !is(path, "raw.X") &&
	    !begins(path, "layers/") && !begins(path, "obsm/"))
		return false;
	if (begins(kind, "csr"))
		return true;
	/* a numeric type and a shape: "int64 10x3" */
	for (size_t i = 1; i + 1 < kind.n; i++)
		sized |= kind.p[i] == 'x' && kind.p[i - 1] >= '0' &&
			 kind.p[i - 1] <= '9';
	return sized && (begins(kind, "int") || begins(kind, "uint") ||
			 begins(kind, "bool") || begins(kind, "float16") ||
			 begins(kind, "float32") || begins(kind, "float64"));
}
