/* Combines a format and a store, chosen by name. */
#include "make/maker.h"

#include <string.h>

#include "base/mem.h"
#include "base/pairs.h"
#include "format/cells/cells_write.h"
#include "make/maker_int.h"
#include "make/write.h"

bool pen__format_writes(const char *format)
{
	const struct pen_format_ops *o = pen__format_find(format);

	return o && o->write;
}

bool pen__format_names(const char *format, const char *path)
{
	const struct pen_format_ops *o = pen__format_find(format);

	return o && pen__format_takes(o, path);
}

int pen__maker_open(struct pen_maker **out, const char *store,
		    const struct pen_opts_kv *kv, size_t nkv,
		    struct pen_err *err)
{
	struct pen_maker *m = pen__calloc(1, sizeof(*m));
	int rc = m ? pen__store_open(&m->st, store, kv, nkv, err)
		   : pen__fail_nomem(err, "writer", sizeof(*m));

	if (!rc && !m->st->ops->sink_open)
		rc = pen__fail(err, P_BAD_VALUE, store,
			       "this store cannot write");
	if (rc) {
		pen__maker_close(m);
		return rc;
	}
	*out = m;
	return 0;
}

int pen__maker_use(struct pen_maker *m, const char *format,
		   const struct pen_opts_kv *kv, size_t nkv,
		   struct pen_err *err)
{
	int rc = 0;

	m->ops = pen__format_find(format);
	if (!m->ops || !m->ops->write)
		return pen__fail(err, P_NOT_IN_BUILD, format,
				 "this build cannot write the format");
	for (size_t i = 0; !rc && i < nkv; i++)
		rc = pen__pairs_add(&m->set, kv[i].key, kv[i].value, err);
	return rc ? rc
		  : pen__format_open(&m->f, m->ops, m->set.kv, m->set.n, err);
}

void pen__maker_close(struct pen_maker *m)
{
	if (!m)
		return;
	pen__format_close(m->f);
	pen__store_close(m->st);
	pen__pairs_clear(&m->set);
	pen__free(m);
}

int pen__maker_write(const struct pen_maker *m, const struct pen_made_file *of,
		     const struct pen_table *t, struct pen_err *err)
{
	const struct pen_write w = { .st = m->st,
				     .path = of->path,
				     .step = of->step,
				     .arg = of->arg,
				     .side_path = of->side_path };

	return pen__write_object(&w, m->f, t, err);
}

int pen__maker_count(const struct pen_maker *m, const char *path, uint64_t *n,
		     struct pen_err *err)
{
	struct pen_objects there = { 0 };
	int rc = 0;

	if (m->st->ops->list)
		rc = m->st->ops->list(m->st, path, NULL, NULL, &there, err);
	*n = there.nobj;
	pen__objects_fini(&there);
	return rc;
}

/* ---- single cells ---- */

const char *pen__cells_format_at(unsigned i)
{
	const struct pen_cells_writer_ops *o = pen__cells_writer_at(i);

	return o ? o->name : NULL;
}

const char *pen__cells_format_for(const char *path)
{
	const struct pen_cells_writer_ops *o = pen__cells_writer_for(path);

	return o ? o->name : NULL;
}

const char *pen__cells_format_suffix(const char *format)
{
	const struct pen_cells_writer_ops *o = pen__cells_writer_find(format);

	return o ? o->suffix : NULL;
}

const struct pen_opt *pen__cells_format_opts(const char *format)
{
	const struct pen_cells_writer_ops *o = pen__cells_writer_find(format);

	return o ? o->opts : NULL;
}

void pen__cells_clean(const char *path)
{
	pen__cells_writer_clean(path);
}
