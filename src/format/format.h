/*
 * A format says what the bytes of an object mean. It does no I/O: index()
 * reads through a callback, everything later gets bytes handed in. So every
 * format works over every store, and can be tested and fuzzed from memory.
 *
 * Life of a data set:
 *   index()  once per object (several at a time, on any thread): how many
 *            samples, and a blob with whatever locate() will need later.
 *            Equal blobs are stored once, so a million alike files share one.
 *   bind()   once: all objects are known; checks that they fit together and
 *            declares the fields.
 *   locate() per sample: which byte ranges (units) it is made of.
 *   unpack() per fetched unit that says so: decompress, check.
 *   emit()   per sample that says so: from the units' bytes into its row.
 * After bind() everything is const and re-entrant, and allocates nothing.
 */
#ifndef PEN_FORMAT_FORMAT_H
#define PEN_FORMAT_FORMAT_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/dtype.h"
#include "base/opt.h"
#include "base/peek.h"
#include "base/table.h"
#include "codec/scratch.h"

/* What index() found in one object. */
struct pen_found {
	uint64_t nsamples;
	struct pen_buf blob;
	/* What other objects are likely to have alike, though not their whole
	 * blobs: becomes a blob that is no object's, once for all of them.
	 * Which blob refers to it, and how, is the format's business. */
	struct pen_buf common;
	void *seen; /* the engine's, of see() */
};

/* All objects together, as bind() and locate() see them. */
struct pen_index {
	uint64_t nobjects, nsamples, nblobs;
	uint64_t per_object;   /* samples in each object, 0 when they differ */
	const uint64_t *first; /* when they differ: nobjects + 1 sums */
	/* per object */
	struct pen_span (*blob)(const struct pen_index *, uint64_t blob_id);
	uint64_t (*blob_of)(const struct pen_index *, uint64_t object);
	uint64_t (*size_of)(const struct pen_index *, uint64_t object);
	void (*name_of)(const struct pen_index *, uint64_t object, char *buf,
			size_t cap);
};

enum pen_unit_flags {
	PEN_UNIT_PLAIN = 1,  /* the bytes are the row of `field`, as they are */
	PEN_UNIT_SHARED = 2, /* other samples need it, too: fetch once, by id */
	PEN_UNIT_COMPRESSED = 4, /* goes through unpack() into `size` bytes */
	PEN_UNIT_CRC32 = 8,	 /* crc32 of the fetched bytes, continued from
				    crc_seed, must be crc */
	PEN_UNIT_CODED = 16,	 /* the engine's: PLAIN, were it not decoded */
};

#define PEN_NO_OBJECT UINT32_MAX

struct pen_unit {
	uint64_t offset, len;
	uint64_t id;	 /* SHARED: the same for all samples that share it */
	uint64_t size;	 /* COMPRESSED: bytes after unpack() */
	uint32_t object; /* PEN_NO_OBJECT: this slot is unused */
	/* PLAIN: where it goes. COMPRESSED: which kind it is of; those of one
	 * kind shrink alike when they are kept. */
	uint16_t field;
	uint16_t flags;
	uint32_t crc_seed, crc;
};

/* One sample on its way into its row. */
struct pen_row {
	uint64_t k; /* sample within the object */
	uint32_t object;
	uint32_t nunits;
	const struct pen_unit *units;
	const struct pen_span *data; /* per unit: fetched or unpacked bytes */
	/* Per field: where the row is, and how many bytes it has. emit()
	 * writes exactly these; padding is the engine's. */
	void *const *dst;
	const size_t *dst_len;
	/* Per field, dst_len to begin with: of a list whose length only emit()
	 * knows, shape() says the most, and emit() how many bytes it has. */
	size_t *used;
	/* Per field, of a format that lends: one whose dst is NULL gets here
	 * where its bytes are, in data, instead of a copy. */
	struct pen_span *lent;
	struct pen_scratch *scratch; /* this thread's, f->scratch_size bytes */
	/* Random, a function of (seed, epoch, sample): for augmentation that
	 * does not depend on threads, ranks or where an epoch was resumed. */
	uint64_t key;
};

/* What fills a row of a padded field beside its sample; see shapes=padded. */
struct pen_pad {
	int64_t value;
	bool before; /* the filling comes first, the sample ends the row */
};

struct pen_format {
	const struct pen_format_ops *ops;
	void *priv; /* ops->priv_size bytes, options parsed */
	/* Set by the engine before index(): how many objects there will be;
	 * 0 when nobody knows. */
	uint64_t nobjects_hint;
	/*
	 * Set by the engine before index(), NULL: it does not look at values.
	 * Else index() calls it for every sample's value of a field of bytes,
	 * in order, where it comes by them; without a value it says whether it
	 * looks at the field, 1 or 0. An error is noted: it is that of the
	 * object only where the object has no other samples.
	 */
	int (*see)(const struct pen_format *, const char *field, uint64_t k,
		   struct pen_peek *value, struct pen_found *,
		   struct pen_err *);
	/* Set by the engine after bind(): samples are read one by one, from
	 * all over or out of memory, so locate() need not put together what
	 * could be read on its own. */
	bool apart;
	/* Set by the engine after bind(): unpacked units are kept, so
	 * unpack() may leave them smaller, if emit() takes them so; it returns
	 * then how many bytes they have. */
	bool narrow;
	const struct pen_index *ix; /* from bind() on */
	/* Set by bind(): */
	struct pen_field field[PEN_MAX_FIELDS];
	struct pen_pad pad[PEN_MAX_FIELDS]; /* zero, after: as it is at first */
	uint32_t nfields;
	uint32_t units_per_sample; /* the most locate() fills */
	bool all_plain;		   /* every unit of every sample is PLAIN */
	bool shares;	     /* some unit of some sample is SHARED, though not
				necessarily of the first one, where one looks */
	bool uniform;	     /* all_plain, 1 unit, same len for all samples,
				those of an object one right after another */
	bool paired;	     /* lists of a field number those of another */
	bool decodes;	     /* emit() makes numbers out of something else
				(pixels, text) and does not only copy */
	bool lends;	     /* emit() fills row->lent */
	size_t scratch_size; /* per thread, for emit() and unpack() */
};

/* For inspect: a fact ("compression", "deflate") or a piece of advice. */
struct pen_describe {
	void *arg;
	void (*fact)(void *arg, const char *name, const char *value);
	void (*advice)(void *arg, const char *text);
};

/* Where a writer's bytes go; returns 0 or a negative pen_code. */
struct pen_out {
	int (*write)(struct pen_out *, const void *, size_t, struct pen_err *);
	/*
	 * Another output, beside this one, whose name has a suffix on top;
	 * it belongs to this one and ends with it. NULL and err on failure.
	 * The function is NULL where there is nothing beside.
	 */
	struct pen_out *(*side)(struct pen_out *, const char *suffix,
				struct pen_err *);
	/* Changes n bytes at `at` that were written already. NULL where that
	 * cannot be done. */
	int (*patch)(struct pen_out *, uint64_t at, const void *, size_t n,
		     struct pen_err *);
};

/* Samples [first, first + n) made on demand. */
int pen__table_rows(const struct pen_table *, uint32_t field, uint64_t first,
		    uint64_t n, void *to, struct pen_err *);
/* All samples of a field, in order, to out, a piece at a time. */
int pen__table_put(const struct pen_table *, uint32_t field, struct pen_out *,
		   struct pen_err *);
/* Sample k alone. */
int pen__table_put_row(const struct pen_table *, uint32_t field, uint64_t k,
		       struct pen_out *, struct pen_err *);
/* All in memory: *mem is the caller's to free, NULL when t->data serves.
 * NULL: no memory, or rows() failed (err says which). */
const void *pen__table_get(const struct pen_table *, uint32_t field, void **mem,
			   struct pen_err *);

struct pen_format_ops {
	const char *name;
	const char *help;	     /* one line */
	const char *const *suffixes; /* ".npy", ...; NULL-terminated */
	/*
	 * A directory of the format is one whole: named with a suffix, or with
	 * one of these files at its top. All files in it are objects, hidden
	 * ones, too. NULL-terminated; NULL: files stand alone.
	 */
	const char *const *markers;
	/* Is a file of a marker's name one, by its first bytes? NULL: by its
	 * name alone. */
	bool (*marks)(const void *head, size_t n);
	/* The format that reads it together with others of its kind; NULL:
	 * there is none. */
	const char *family;
	/*
	 * What its one field, of bytes, is decoded by, unless decode.x= says
	 * otherwise; of several ("jpeg png") a value's first bytes tell. These
	 * get the options of the format that they know. NULL: nothing is.
	 */
	const char *decoder;
	bool takes_all; /* in directories every file is one, whatever its name
			 */
	const struct pen_opt *opts;
	size_t priv_size;
	/* Options are parsed into f->priv. May be NULL. */
	int (*open)(struct pen_format *, struct pen_err *);
	void (*close)(struct pen_format *); /* copes with half-built */
	int (*index)(const struct pen_format *, struct pen_peek *,
		     struct pen_found *, struct pen_err *);
	int (*bind)(struct pen_format *, const struct pen_index *,
		    struct pen_err *);
	/*
	 * After index(), of all that one folder has, unless a format was named:
	 * *other is the format that these objects are of together, or NULL.
	 * nbad of them could not be indexed. May be NULL.
	 */
	int (*together)(const struct pen_format *, const struct pen_index *,
			uint64_t nbad, const char **other, struct pen_err *);
	/* Shape of one sample's field, where field.shape has -1. NULL: it
	 * never has. */
	void (*shape)(const struct pen_format *, uint32_t object, uint64_t k,
		      uint32_t field, int64_t *shape);
	/* Fills units_per_sample units; unused ones get PEN_NO_OBJECT. */
	void (*locate)(const struct pen_format *, uint32_t object, uint64_t k,
		       struct pen_unit *units);
	/* How many samples need a shared unit of sample k; 0: not known. May
	 * be NULL. */
	uint64_t (*users)(const struct pen_format *, uint32_t object,
			  uint64_t k, const struct pen_unit *);
	/* NULL: no unit is COMPRESSED. */
	int (*unpack)(const struct pen_format *, const struct pen_unit *,
		      struct pen_span raw, void *out, struct pen_scratch *,
		      struct pen_err *);
	/* NULL: all_plain is always set. */
	int (*emit)(const struct pen_format *, const struct pen_row *,
		    struct pen_err *);
	/* A sample's number in a field, where the index has it: false when it
	 * has to be read. What is missing in the data is NAN. May be NULL. */
	bool (*value)(const struct pen_format *, uint32_t object, uint64_t k,
		      uint32_t field, double *out);
	/* What codes of a field stand for: how many there are, and the name
	 * of one (0, or PEN_ENOTFOUND). NULL: no field has codes. */
	uint64_t (*nlabels)(const struct pen_format *, uint32_t field);
	int (*label)(const struct pen_format *, uint32_t field, uint64_t code,
		     char *buf, size_t cap);
	/* inspect; may be NULL */
	void (*describe)(const struct pen_format *, struct pen_describe *);
	/* What is wrong with objects though they can be read, as
	 * pen_dataset_warnings() has it. May be NULL. */
	void (*warn)(const struct pen_format *, void *arg,
		     void (*see)(void *arg, const struct pen_err *));
	/* Writes one object; NULL when the format is only read. */
	int (*write)(const struct pen_format *, const struct pen_table *,
		     struct pen_out *, struct pen_err *);
};

const struct pen_format_ops *pen__format_at(unsigned i);
const struct pen_format_ops *pen__format_find(const char *name);
/* By the longest suffix that fits; NULL when none does. */
const struct pen_format_ops *pen__format_for(const char *file_name);
bool pen__format_takes(const struct pen_format_ops *, const char *file_name);
/* Is a either b, or of its family? */
bool pen__format_is(const struct pen_format_ops *a,
		    const struct pen_format_ops *b);
/* The format that a directory, or one it lies in, is of by its name. */
const struct pen_format_ops *pen__format_of_dir(const char *dir);

/* An error of open or bind that names an option names it as users do. */
void pen__format_err(const struct pen_format_ops *, struct pen_err *);

int pen__format_open(struct pen_format **out, const struct pen_format_ops *,
		     const struct pen_opts_kv *kv, size_t nkv,
		     struct pen_err *err);
void pen__format_close(struct pen_format *);

/* Which object holds sample s, and which of its samples it is. */
static inline void pen__index_find(const struct pen_index *ix, uint64_t s,
				   uint32_t *object, uint64_t *k)
{
	if (ix->per_object == 1) {
		*object = (uint32_t)s;
		*k = 0;
	} else if (ix->nobjects == 1) {
		*object = 0;
		*k = s;
	} else if (ix->per_object) {
		*object = (uint32_t)(s / ix->per_object);
		*k = s % ix->per_object;
	} else {
		uint64_t lo = 0, hi = ix->nobjects;

		/* first[lo] <= s < first[hi] throughout; objects without
		 * samples are stepped over by taking the last such lo */
		while (hi - lo > 1) {
			uint64_t mid = lo + (hi - lo) / 2;

			if (ix->first[mid] <= s)
				lo = mid;
			else
				hi = mid;
		}
		*object = (uint32_t)lo;
		*k = s - ix->first[lo];
	}
}

#endif
