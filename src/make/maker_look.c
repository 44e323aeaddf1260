/*
 * Inspects existing files: the header of a file, read through its format, and
 * the files of a folder. Nothing is decoded, so this is cheap; damage inside
 * the data is not found.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "engine/decoded.h"
#include "make/maker.h"
#include "make/maker_int.h"

struct file {
	struct pen_peek peek; /* must be first */
	int fd;
	struct pen_store *st;
	struct pen_found found;
};

/* ---- reading ---- */

static int file_read(struct pen_peek *pk, uint64_t off, void *buf, size_t len,
		     struct pen_err *err)
{
	const struct file *f = (const struct file *)pk;
	char *to = buf;

	while (len) {
		const ssize_t n = pread(f->fd, to, len, (off_t)off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return pen__fail_sys(err, errno, pk->name,
					     "cannot read");
		if (!n)
			return pen__fail(err, P_TRUNCATED, pk->name,
					 "the file shrank while it was read");
		to += n;
		off += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

static int file_side(struct pen_peek *pk, const char *suffix, uint64_t limit,
		     struct pen_buf *out, struct pen_err *err)
{
	struct pen_store *st = ((struct file *)pk)->st;
	char path[4096 + 64];

	snprintf(path, sizeof(path), "%s%s", pk->name, suffix);
	return st->ops->read_whole(st, path, limit, out, err);
}

static bool file_open(struct file *f, const char *path)
{
	struct stat sb;

	f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (f->fd < 0)
		return false;
	f->peek = (struct pen_peek){ .name = path,
				     .read = file_read,
				     .read_side = file_side };
	if (fstat(f->fd, &sb) || !S_ISREG(sb.st_mode)) {
		close(f->fd);
		return false;
	}
	f->peek.size = (uint64_t)sb.st_size;
	return true;
}

/* ---- an index of one object, for bind() ---- */

struct alone {
	struct pen_index ix; /* must be first */
	const struct file *f;
};

static struct pen_span alone_blob(const struct pen_index *ix, uint64_t id)
{
	const struct pen_buf *b = &((const struct alone *)ix)->f->found.blob;

	(void)id;
	return (struct pen_span){ b->p, b->n };
}

static uint64_t alone_blob_of(const struct pen_index *ix, uint64_t object)
{
	(void)ix;
	(void)object;
	return 0;
}

static uint64_t alone_size(const struct pen_index *ix, uint64_t object)
{
	(void)object;
	return ((const struct alone *)ix)->f->peek.size;
}

static void alone_name(const struct pen_index *ix, uint64_t object, char *buf,
		       size_t cap)
{
	(void)object;
	snprintf(buf, cap, "%s", ((const struct alone *)ix)->f->peek.name);
}

/* ---- inspection ---- */

/* How the first sample is stored. */
static bool see_units(const struct pen_format *f, struct pen_look *out)
{
	struct pen_unit *u = pen__calloc(f->units_per_sample, sizeof(*u));

	if (!u)
		return false;
	f->ops->locate(f, 0, 0, u);
	out->first_bytes = u[0].len;
	for (uint32_t i = 0; i < f->units_per_sample; i++)
		out->packed |= u[i].object != PEN_NO_OBJECT &&
			       (u[i].flags & PEN_UNIT_COMPRESSED);
	pen__free(u);
	return true;
}

/* The format uses the index `a` until it is closed. */
static bool look_bound(struct pen_format *fresh, const struct file *f,
		       struct alone *a, struct pen_look *out)
{
	bool good;

	*a = (struct alone){ .ix = { .nobjects = 1,
				     .nblobs = 1,
				     .nsamples = f->found.nsamples,
				     .per_object = f->found.nsamples,
				     .blob = alone_blob,
				     .blob_of = alone_blob_of,
				     .size_of = alone_size,
				     .name_of = alone_name },
			     .f = f };
	good = f->found.nsamples && !fresh->ops->bind(fresh, &a->ix, NULL) &&
	       see_units(fresh, out);
	out->nsamples = f->found.nsamples;
	out->nfields = fresh->nfields;
	memcpy(out->field, fresh->field, sizeof(out->field));
	return good;
}

bool pen__maker_look(const struct pen_maker *m, const char *path,
		     struct pen_look *out)
{
	const struct pen_decode_set set = { .format = m->set };
	struct file f = { .st = m->st };
	struct pen_format *fresh = NULL;
	struct alone a;
	bool good;

	*out = (struct pen_look){ 0 };
	if (!file_open(&f, path))
		return false;
	out->size = f.peek.size;
	good = !pen__format_open(&fresh, m->ops, m->set.kv, m->set.n, NULL) &&
	       !pen__decoded_open(&fresh, &set, NULL) &&
	       !fresh->ops->index(fresh, &f.peek, &f.found, NULL) &&
	       look_bound(fresh, &f, &a, out);
	pen__format_close(fresh);
	pen__buf_fini(&f.found.blob);
	close(f.fd);
	return good;
}

/* ---- folders ---- */

struct pen_there {
	struct pen_objects set;
};

static bool wanted(void *ops, const char *dir, const char *name)
{
	(void)dir;
	return name && pen__format_takes(ops, name);
}

int pen__there_list(struct pen_there **out, const char *path,
		    const char *format, struct pen_err *err)
{
	const struct pen_format_ops *ops = format ? pen__format_find(format)
						  : NULL;
	struct pen_there *t;
	struct pen_store *st = NULL;
	int rc;

	if (format && !ops)
		return pen__fail(err, P_UNKNOWN_NAME, format,
				 "unknown format; see `penstock formats`");
	t = pen__calloc(1, sizeof(*t));
	if (!t)
		return pen__fail_nomem(err, "file list", sizeof(*t));
	rc = pen__store_open(&st, "posix", NULL, 0, err);
	if (!rc && access(path, F_OK) == 0)
		rc = st->ops->list(st, path, ops ? wanted : NULL,
				   (void *)(uintptr_t)ops, &t->set, err);
	if (!rc)
		pen__objects_sort(&t->set);
	pen__store_close(st);
	if (rc) {
		pen__there_free(t);
		return rc;
	}
	*out = t;
	return 0;
}

void pen__there_free(struct pen_there *t)
{
	if (!t)
		return;
	pen__objects_fini(&t->set);
	pen__free(t);
}

uint64_t pen__there_n(const struct pen_there *t)
{
	return t->set.nobj;
}

uint64_t pen__there_bytes(const struct pen_there *t)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < t->set.nobj; i++)
		n += t->set.obj[i].size;
	return n;
}

bool pen__there_path(const struct pen_there *t, uint64_t i, char *buf,
		     size_t cap)
{
	return pen__object_path(&t->set, (uint32_t)i, buf, cap);
}

const char *pen__there_name(const struct pen_there *t, uint64_t i)
{
	return pen__object_name(&t->set, (uint32_t)i);
}

double pen__there_cached(const struct pen_there *t)
{
	return pen__store_resident(&t->set);
}
