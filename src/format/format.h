/*
 * A format interprets the bytes of an object. It does no I/O: index() reads
 * through a callback, and later functions receive bytes. So every format works
 * with every store, and can be tested and fuzzed from memory.
 *
 * Life cycle of a data set:
 *   index()  once per object (several in parallel, on any thread): the number
 *            of samples, and a blob with everything that locate() needs later.
 *            Equal blobs are stored once, so a million similar files share one.
 *   bind()   once, when all objects are known: checks that they match and
 *            declares the fields.
 *   locate() per sample: the byte ranges (units) that it consists of.
 *   unpack() per fetched unit that requires it: decompress, check.
 *   emit()   per sample that requires it: from the bytes of units to its row.
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
	/* Data that other objects probably share, although their blobs differ:
	 * stored once, as a blob that belongs to no object. The format decides
	 * which blobs refer to it, and how. */
	struct pen_buf common;
	void *seen; /* owned by the engine's see() */
};

/* All objects together, as bind() and locate() see them. */
struct pen_index {
	uint64_t nobjects, nsamples, nblobs;
	uint64_t per_object;   /* samples per object; 0 if they differ */
	const uint64_t *first; /* if they differ: nobjects + 1 prefix sums */
	/* per object */
	struct pen_span (*blob)(const struct pen_index *, uint64_t blob_id);
	uint64_t (*blob_of)(const struct pen_index *, uint64_t object);
	uint64_t (*size_of)(const struct pen_index *, uint64_t object);
	void (*name_of)(const struct pen_index *, uint64_t object, char *buf,
			size_t cap);
};

enum pen_unit_flags {
	PEN_UNIT_PLAIN = 1,  /* the bytes are the row of `field`, unchanged */
	PEN_UNIT_SHARED = 2, /* used by other samples: fetched once, by id */
	PEN_UNIT_COMPRESSED = 4, /* unpack() expands it to `size` bytes */
	PEN_UNIT_CRC32 = 8,	 /* crc32 of the fetched bytes, continued from
				    crc_seed, must be crc */
	PEN_UNIT_CODED = 16, /* set by the engine: PLAIN, but to be decoded */
};

#define PEN_NO_OBJECT UINT32_MAX

struct pen_unit {
	uint64_t offset, len;
	uint64_t id;	 /* SHARED: the same for all samples that share it */
	uint64_t size;	 /* COMPRESSED: bytes after unpack() */
	uint32_t object; /* PEN_NO_OBJECT: this slot is unused */
	/* PLAIN: destination. COMPRESSED: its type; units of one type shrink
	 * alike when they are kept. */
	uint16_t field;
	uint16_t flags;
	uint32_t crc_seed, crc;
};

/* One sample being written to its row. */
struct pen_row {
	uint64_t k; /* sample within the object */
	uint32_t object;
	uint32_t nunits;
	const struct pen_unit *units;
	const struct pen_span *data; /* per unit: fetched or unpacked bytes */
	/* Per field: the row and its size in bytes. emit() writes exactly that
	 * much; the engine pads. */
	void *const *dst;
	const size_t *dst_len;
	/* Per field, initially dst_len. For a list whose length only emit()
	 * knows, shape() returns the maximum, and emit() stores the bytes used
	 * here. */
	size_t *used;
	/* Per field, for formats with `lends`: if dst is NULL, emit() stores
	 * here where the bytes are in data instead of copying them. */
	struct pen_span *lent;
	struct pen_scratch *scratch; /* this thread's, f->scratch_size bytes */
	/* Random number derived from (seed, epoch, sample): for augmentation
	 * that does not depend on threads, ranks or resuming. */
	uint64_t key;
};

/* Padding of a padded field; see shapes=padded. */
struct pen_pad {
	int64_t value;
	bool before; /* padding precedes the sample */
};

struct pen_format {
	const struct pen_format_ops *ops;
	void *priv; /* ops->priv_size bytes, options parsed */
	/* Set by the engine before index(): number of objects; 0 if unknown. */
	uint64_t nobjects_hint;
	/*
	 * Set by the engine before index(); NULL if values are not inspected.
	 * Otherwise index() calls it for each value of a field of bytes, in
	 * order, where it reads them. Without a value it returns whether it
	 * inspects the field (1 or 0). Errors are recorded; one counts as the
	 * object's error only if the object has no other samples.
	 */
	int (*see)(const struct pen_format *, const char *field, uint64_t k,
		   struct pen_peek *value, struct pen_found *,
		   struct pen_err *);
	/* Set by the engine after bind(): samples are read one by one, in
	 * random order or from memory, so locate() need not combine reads. */
	bool apart;
	/* Set by the engine after bind(): unpacked units are kept, so unpack()
	 * may return them in a smaller form that emit() understands; it then
	 * returns their size in bytes. */
	bool narrow;
	const struct pen_index *ix; /* from bind() on */
	/* Set by bind(): */
	struct pen_field field[PEN_MAX_FIELDS];
	struct pen_pad pad[PEN_MAX_FIELDS]; /* default: zeros after */
	uint32_t nfields;
	uint32_t units_per_sample; /* upper bound for locate() */
	bool all_plain;		   /* every unit of every sample is PLAIN */
	bool shares;  /* some unit is SHARED, though not necessarily one of the
			 first sample */
	bool uniform; /* all_plain, 1 unit of the same length for all samples,
			 which are contiguous in an object */
	bool paired;  /* lists of one field index those of another */
	bool decodes; /* emit() decodes (pixels, text) rather than copies */
	bool lends;   /* emit() fills row->lent */
	size_t scratch_size; /* per thread, for emit() and unpack() */
};

/* For inspect: a fact ("compression", "deflate") or a piece of advice. */
struct pen_describe {
	void *arg;
	void (*fact)(void *arg, const char *name, const char *value);
	void (*advice)(void *arg, const char *text);
};

/* Output of a writer. Functions return 0 or a negative pen_code. */
struct pen_out {
	int (*write)(struct pen_out *, const void *, size_t, struct pen_err *);
	/*
	 * Another output next to this one, named with an additional suffix; it
	 * is owned by this one and closed with it. NULL and err on failure. The
	 * function is NULL if not supported.
	 */
	struct pen_out *(*side)(struct pen_out *, const char *suffix,
				struct pen_err *);
	/* Overwrites n bytes at `at` that are already written. NULL if not
	 * supported. */
	int (*patch)(struct pen_out *, uint64_t at, const void *, size_t n,
		     struct pen_err *);
};

/* The only field of a table: bytes per sample, and of all samples. An error if
 * there are several fields, or a size overflows. */
int pen__table_single(const struct pen_format *, const struct pen_table *,
		      size_t *row, size_t *all, struct pen_err *);
/* Generates samples [first, first + n). */
int pen__table_rows(const struct pen_table *, uint32_t field, uint64_t first,
		    uint64_t n, void *to, struct pen_err *);
/* Writes all samples of a field in order, in pieces. */
int pen__table_put(const struct pen_table *, uint32_t field, struct pen_out *,
		   struct pen_err *);
/* Writes sample k only. */
int pen__table_put_row(const struct pen_table *, uint32_t field, uint64_t k,
		       struct pen_out *, struct pen_err *);
/* All samples in memory. *mem is the caller's to free, NULL if t->data is
 * returned. Returns NULL if memory is short or rows() failed (see err). */
const void *pen__table_get(const struct pen_table *, uint32_t field, void **mem,
			   struct pen_err *);

struct pen_format_ops {
	const char *name;
	const char *help;	     /* one line */
	const char *const *suffixes; /* ".npy", ...; NULL-terminated */
	/*
	 * A directory of the format is one unit: its name has a suffix, or it
	 * has one of these files at its top. All files in it are objects,
	 * including hidden ones. NULL-terminated; NULL: files are independent.
	 */
	const char *const *markers;
	/* Whether a file with a marker's name is a marker, by its first bytes.
	 * NULL: by its name alone. */
	bool (*marks)(const void *head, size_t n);
	/* The format that reads it together with related formats, or NULL. */
	const char *family;
	/*
	 * Decoder of its only field (of bytes) unless decode.x= selects
	 * another; with several ("jpeg png") the first bytes of a value decide.
	 * They receive the options of the format that they know. NULL: none.
	 */
	const char *decoder;
	bool takes_all; /* takes every file of a directory, whatever its name */
	/* Its option fields= saves no work: the loader hides the others. */
	bool all_fields;
	const struct pen_opt *opts;
	size_t priv_size;
	/* Options are parsed into f->priv. May be NULL. */
	int (*open)(struct pen_format *, struct pen_err *);
	void (*close)(struct pen_format *); /* also after a failed open */
	int (*index)(const struct pen_format *, struct pen_peek *,
		     struct pen_found *, struct pen_err *);
	int (*bind)(struct pen_format *, const struct pen_index *,
		    struct pen_err *);
	/*
	 * After index(), for all objects of one folder, unless a format was
	 * specified: *other is the format that reads these objects together, or
	 * NULL. nbad of them could not be indexed. May be NULL.
	 */
	int (*together)(const struct pen_format *, const struct pen_index *,
			uint64_t nbad, const char **other, struct pen_err *);
	/* Shape of a field of one sample, if field.shape contains -1. NULL: it
	 * never does. */
	void (*shape)(const struct pen_format *, uint32_t object, uint64_t k,
		      uint32_t field, int64_t *shape);
	/* Fills units_per_sample units; unused ones get PEN_NO_OBJECT. */
	void (*locate)(const struct pen_format *, uint32_t object, uint64_t k,
		       struct pen_unit *units);
	/* Number of samples that need a shared unit of sample k; 0: unknown.
	 * May be NULL. */
	uint64_t (*users)(const struct pen_format *, uint32_t object,
			  uint64_t k, const struct pen_unit *);
	/* NULL: no unit is COMPRESSED. */
	int (*unpack)(const struct pen_format *, const struct pen_unit *,
		      struct pen_span raw, void *out, struct pen_scratch *,
		      struct pen_err *);
	/* NULL: all_plain is always set. */
	int (*emit)(const struct pen_format *, const struct pen_row *,
		    struct pen_err *);
	/* Value of a field if the index contains it; false if it has to be
	 * read. Missing values are NAN. May be NULL. */
	bool (*value)(const struct pen_format *, uint32_t object, uint64_t k,
		      uint32_t field, double *out);
	/* Names of the codes of a field: their number, and the name of one (0
	 * or PEN_ENOTFOUND). NULL: no field has codes. */
	uint64_t (*nlabels)(const struct pen_format *, uint32_t field);
	int (*label)(const struct pen_format *, uint32_t field, uint64_t code,
		     char *buf, size_t cap);
	/* inspect; may be NULL */
	void (*describe)(const struct pen_format *, struct pen_describe *);
	/* Problems of objects that can be read, for pen_dataset_warnings(). May
	 * be NULL. */
	void (*warn)(const struct pen_format *, void *arg,
		     void (*see)(void *arg, const struct pen_err *));
	/* Writes one object; NULL if the format is read-only. */
	int (*write)(const struct pen_format *, const struct pen_table *,
		     struct pen_out *, struct pen_err *);
};

const struct pen_format_ops *pen__format_at(unsigned i);
const struct pen_format_ops *pen__format_find(const char *name);
/* By the longest matching suffix; NULL if none matches. */
const struct pen_format_ops *pen__format_for(const char *file_name);
bool pen__format_takes(const struct pen_format_ops *, const char *file_name);
/* Whether a is b or belongs to its family. */
bool pen__format_is(const struct pen_format_ops *a,
		    const struct pen_format_ops *b);
/* The format of a directory, by its name or that of a parent. */
const struct pen_format_ops *pen__format_of_dir(const char *dir);

/* Prefixes the option that an error of open or bind names, as users write it.
 */
void pen__format_err(const struct pen_format_ops *, struct pen_err *);

int pen__format_open(struct pen_format **out, const struct pen_format_ops *,
		     const struct pen_opts_kv *kv, size_t nkv,
		     struct pen_err *err);
void pen__format_close(struct pen_format *);

/* The object of sample s, and its number within the object. */
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

		/* invariant: first[lo] <= s < first[hi]; taking the last such
		 * lo skips objects without samples */
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
