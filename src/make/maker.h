/*
 * Files of a format, written through a store: for who makes data and need not
 * know how either works. And what is in a file that is there already.
 */
#ifndef PEN_MAKE_MAKER_H
#define PEN_MAKE_MAKER_H

#include <stdbool.h>

#include "base/opt.h"
#include "base/table.h"

/* Can a format be written; and does a file of that name belong to it? Of single
 * cells those below write. */
bool pen__format_writes(const char *format);
bool pen__format_names(const char *format, const char *path);

/* Opens a store that can write; then a format, for as many files as it takes.
 * The settings of both are copied. */
struct pen_maker;
int pen__maker_open(struct pen_maker **out, const char *store,
		    const struct pen_opts_kv *kv, size_t nkv,
		    struct pen_err *err);
int pen__maker_use(struct pen_maker *, const char *format,
		   const struct pen_opts_kv *kv, size_t nkv,
		   struct pen_err *err);
void pen__maker_close(struct pen_maker *); /* NULL ok */

struct pen_made_file {
	const char *path;
	/* Called before n bytes are written; a result other than 0 ends it.
	 * May be NULL. */
	int (*step)(void *arg, size_t n, struct pen_err *);
	void *arg;
	/* Where the only side file goes, instead of beside; may be NULL. */
	const char *side_path;
};
/* All of it, or nothing. Any thread. */
int pen__maker_write(const struct pen_maker *, const struct pen_made_file *,
		     const struct pen_table *, struct pen_err *err);

/* What a file that is there says of itself in its header; nothing is decoded.
 * False: it is not there, or not of the format. Any thread. */
struct pen_look {
	uint64_t size, nsamples;
	uint32_t nfields;
	struct pen_field field[2]; /* the first ones */
	uint64_t first_bytes; /* the first sample's first piece, as it lies */
	bool packed;	      /* some piece of it is compressed */
};
bool pen__maker_look(const struct pen_maker *, const char *path,
		     struct pen_look *);

/* How many objects its store finds under path. */
int pen__maker_count(const struct pen_maker *, const char *path, uint64_t *n,
		     struct pen_err *err);

/* Files under path, sorted by path: those of a format (NULL: all but hidden
 * ones). A path that is not there has none. */
struct pen_there;
int pen__there_list(struct pen_there **out, const char *path,
		    const char *format, struct pen_err *err);
void pen__there_free(struct pen_there *); /* NULL ok */
uint64_t pen__there_n(const struct pen_there *);
uint64_t pen__there_bytes(const struct pen_there *);
bool pen__there_path(const struct pen_there *, uint64_t i, char *buf,
		     size_t cap);
const char *pen__there_name(const struct pen_there *, uint64_t i); /* no folder
								    */
/* What share of them is in the page cache; < 0: unknown. */
double pen__there_cached(const struct pen_there *);

/* Formats that single cells are written to: the i-th, by the suffix of a path,
 * its suffix and settings; NULL: there is none. */
const char *pen__cells_format_at(unsigned i);
const char *pen__cells_format_for(const char *path);
const char *pen__cells_format_suffix(const char *format);
const struct pen_opt *pen__cells_format_opts(const char *format);
/* Removes what writers of that path left who were killed; what one of them had
 * moved aside comes back. */
void pen__cells_clean(const char *path);

#endif
