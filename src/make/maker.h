/*
 * Writes files of a format through a store, for callers that need not know
 * either; and inspects existing files.
 */
#ifndef PEN_MAKE_MAKER_H
#define PEN_MAKE_MAKER_H

#include <stdbool.h>

#include "base/opt.h"
#include "base/table.h"

/* Whether a format can be written, and whether a file of that name belongs
 * to it. Formats of single cells are written by the functions below. */
bool pen__format_writes(const char *format);
bool pen__format_names(const char *format, const char *path);

/* Opens a store that can write, then a format for any number of files. The
 * settings of both are copied. */
struct pen_maker;
int pen__maker_open(struct pen_maker **out, const char *store,
		    const struct pen_opts_kv *kv, size_t nkv,
		    struct pen_err *err);
int pen__maker_use(struct pen_maker *, const char *format,
		   const struct pen_opts_kv *kv, size_t nkv,
		   struct pen_err *err);
void pen__maker_close(struct pen_maker *); /* NULL is allowed */

struct pen_made_file {
	const char *path;
	/* Called before n bytes are written; a nonzero result aborts. May be
	 * NULL. */
	int (*step)(void *arg, size_t n, struct pen_err *);
	void *arg;
	/* Path of the only side file, instead of next to the object; may be
	 * NULL. */
	const char *side_path;
};
/* Writes the complete file, or nothing. Any thread. */
int pen__maker_write(const struct pen_maker *, const struct pen_made_file *,
		     const struct pen_table *, struct pen_err *err);

/* The header of an existing file; nothing is decoded. False: the file does
 * not exist or has another format. Any thread. */
struct pen_look {
	uint64_t size, nsamples;
	uint32_t nfields;
	struct pen_field field[2]; /* the first ones */
	uint64_t first_bytes; /* stored, of the first sample's first part */
	bool packed;	      /* some part of it is compressed */
};
bool pen__maker_look(const struct pen_maker *, const char *path,
		     struct pen_look *);

/* The number of objects that its store finds under path. */
int pen__maker_count(const struct pen_maker *, const char *path, uint64_t *n,
		     struct pen_err *err);

/* Files under path, sorted by path: those of a format (NULL: all except
 * hidden ones). A missing path has none. */
struct pen_there;
int pen__there_list(struct pen_there **out, const char *path,
		    const char *format, struct pen_err *err);
void pen__there_free(struct pen_there *); /* NULL is allowed */
uint64_t pen__there_n(const struct pen_there *);
uint64_t pen__there_bytes(const struct pen_there *);
bool pen__there_path(const struct pen_there *, uint64_t i, char *buf,
		     size_t cap);
const char *pen__there_name(const struct pen_there *,
			    uint64_t i); /* without its folder */
/* The share of their bytes in the page cache; < 0: unknown. */
double pen__there_cached(const struct pen_there *);

/* Formats that single cells can be written to: the i-th, by the suffix of a
 * path, its suffix and settings; NULL: none. */
const char *pen__cells_format_at(unsigned i);
const char *pen__cells_format_for(const char *path);
const char *pen__cells_format_suffix(const char *format);
const struct pen_opt *pen__cells_format_opts(const char *format);
/* Removes leftovers of killed writers of that path and restores an old
 * target that one of them had moved aside. */
void pen__cells_clean(const char *path);

#endif
