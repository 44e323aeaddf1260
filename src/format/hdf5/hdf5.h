/*
 * A reader of HDF5's file structures: groups, attributes, types, and the
 * location of the bytes of a data set. It is independent of the format `hdf5`;
 * it only needs a pen_peek.
 *
 * All addresses here are offsets in the object; the base address of the file (a
 * user block) is added when they are read from a structure. PEN_H5_NOWHERE is
 * HDF5's "undefined address".
 *
 * Input is untrusted. Every structure is loaded entirely, after its size has
 * been checked against the object's, and parsed with a cursor. The total of all
 * loads is bounded by the size of the object, so that cycles and shared nodes
 * end in an error instead of using unbounded time or memory.
 */
#ifndef PEN_FORMAT_HDF5_HDF5_H
#define PEN_FORMAT_HDF5_HDF5_H

#include "format/chunked/chunks.h"

#define PEN_H5_NOWHERE UINT64_MAX

/* ---- the file ---- */

struct pen_h5;
int pen__h5_open(struct pen_h5 **out, struct pen_peek *, struct pen_err *);
void pen__h5_close(struct pen_h5 *); /* NULL ok */
uint64_t pen__h5_root(const struct pen_h5 *);
unsigned pen__h5_superblock(const struct pen_h5 *); /* version */

/* ---- types and shapes ---- */

enum pen_h5_class {
	PEN_H5_INT = 0,
	PEN_H5_FLOAT = 1,
	PEN_H5_TIME = 2,
	PEN_H5_STRING = 3, /* fixed-length */
	PEN_H5_BITS = 4,
	PEN_H5_OPAQUE = 5,
	PEN_H5_COMPOUND = 6,
	PEN_H5_REFERENCE = 7,
	PEN_H5_ENUM = 8,
	PEN_H5_VLEN = 9,
	PEN_H5_ARRAY = 10,
};

struct pen_h5_type {
	enum pen_h5_class cls;
	uint32_t size; /* bytes of one element in the file */
	int dtype;     /* enum pen_dtype, or -1: not valid for a field */
	bool swap;     /* big-endian */
	bool vlen_string;
	bool utf8;   /* strings */
	uint8_t pad; /* fixed-length strings: 0 NUL-terminated, 1 NUL-padded, 2
			space-padded */
	uint32_t nmembers;   /* compound, enum */
	struct pen_span raw; /* as encoded; valid as long as its message */
};

/* Description of a type that a field cannot have, for messages. */
const char *pen__h5_type_name(const struct pen_h5_type *);
/* Converts n bytes of numbers to native byte order. */
void pen__h5_swap(const struct pen_h5_type *, uint8_t *p, size_t n);
/* Member i of a compound or an enumeration; *at: its offset, or value. */
bool pen__h5_member(const struct pen_h5_type *, uint32_t i, const char **name,
		    struct pen_h5_type *, uint64_t *at);
/* The base type of an array or variable-length type. */
bool pen__h5_base(const struct pen_h5_type *, struct pen_h5_type *);

struct pen_h5_space {
	bool null; /* no elements at all */
	uint32_t ndim;
	uint64_t dim[PEN_MAX_DIMS];
	uint64_t max[PEN_MAX_DIMS]; /* UINT64_MAX: unlimited */
};
/* Number of elements; false on overflow. */
bool pen__h5_count(const struct pen_h5_space *, uint64_t *out);

/* ---- object headers ---- */

struct pen_h5_msg {
	const uint8_t *p;
	uint64_t at; /* of p in the object */
	uint32_t n;
	uint16_t type;
	uint8_t flags;
};

enum pen_h5_msg_type {
	PEN_H5_MSG_SPACE = 0x01,
	PEN_H5_MSG_LINK_INFO = 0x02,
	PEN_H5_MSG_TYPE = 0x03,
	PEN_H5_MSG_FILL_OLD = 0x04,
	PEN_H5_MSG_FILL = 0x05,
	PEN_H5_MSG_LINK = 0x06,
	PEN_H5_MSG_EXTERNAL = 0x07,
	PEN_H5_MSG_LAYOUT = 0x08,
	PEN_H5_MSG_FILTERS = 0x0b,
	PEN_H5_MSG_ATTR = 0x0c,
	PEN_H5_MSG_MORE = 0x10,
	PEN_H5_MSG_SYMBOLS = 0x11,
	PEN_H5_MSG_ATTR_INFO = 0x15,
};

struct pen_h5_head {
	struct pen_h5_msg *msg;
	size_t n, cap;
	struct pen_buf block[32]; /* memory of the messages */
	uint32_t nblocks;
};

int pen__h5_head_open(struct pen_h5 *, uint64_t addr, struct pen_h5_head *,
		      struct pen_err *);
void pen__h5_head_close(struct pen_h5_head *);
const struct pen_h5_msg *pen__h5_msg(const struct pen_h5_head *,
				     enum pen_h5_msg_type);
bool pen__h5_is_group(const struct pen_h5_head *);
bool pen__h5_is_dataset(const struct pen_h5_head *);

/* ---- groups ---- */

struct pen_h5_link {
	const char *name;   /* NUL-terminated; valid during the callback */
	uint64_t addr;	    /* hard: the object's header */
	const char *target; /* soft: its path; NULL otherwise */
	bool external;	    /* to another file, which is never opened */
};
/* Returns 0 to continue, 1 to stop, or an error. */
typedef int pen_h5_link_fn(void *arg, const struct pen_h5_link *,
			   struct pen_err *);
/* Visits the links of a group until the callback stops: 0 or an error. */
int pen__h5_links(struct pen_h5 *, uint64_t group, pen_h5_link_fn *, void *arg,
		  struct pen_err *);
/* The object at a path, from the root; soft links are followed. */
int pen__h5_find(struct pen_h5 *, const char *path, uint64_t *out,
		 struct pen_err *);

/* ---- attributes ---- */

struct pen_h5_attr {
	const char *name;
	struct pen_h5_type type;
	struct pen_h5_space space;
	struct pen_span data;
};
typedef int pen_h5_attr_fn(void *arg, const struct pen_h5_attr *,
			   struct pen_err *);
int pen__h5_attrs(struct pen_h5 *, const struct pen_h5_head *, pen_h5_attr_fn *,
		  void *arg, struct pen_err *);
/*
 * Appends element i of string data (fixed or variable length) to out, without a
 * NUL. data contains all elements as stored.
 */
int pen__h5_string(struct pen_h5 *, const struct pen_h5_type *,
		   struct pen_span data, uint64_t i, struct pen_buf *out,
		   struct pen_err *);

/* The object that the first element, an object reference, points to. */
uint64_t pen__h5_referred(const struct pen_h5 *, const struct pen_h5_type *,
			  struct pen_span data);

/* ---- data sets ---- */

enum pen_h5_layout { PEN_H5_COMPACT, PEN_H5_CONTIGUOUS, PEN_H5_CHUNKED };

enum pen_h5_index {
	PEN_H5_BTREE1,
	PEN_H5_SINGLE,
	PEN_H5_IMPLICIT,
	PEN_H5_FIXED,
	PEN_H5_EXTENSIBLE,
	PEN_H5_BTREE2,
};

struct pen_h5_data {
	struct pen_h5_head head;
	struct pen_h5_space space;
	struct pen_h5_type type;
	enum pen_h5_layout layout;
	uint64_t addr;	 /* of the bytes, or of the chunk index */
	uint64_t nbytes; /* compact, contiguous: stored bytes */
	/* compact data in the metadata cache image, which is newer than the
	 * bytes at addr. Valid until close. */
	struct pen_span kept;
	/* chunked */
	enum pen_h5_index index;
	uint32_t chunk[PEN_MAX_DIMS];
	uint64_t chunk_bytes;
	bool edge_plain;      /* partial chunks are not filtered */
	uint64_t single_size; /* single chunk with filters */
	uint32_t single_mask;
	struct pen_filters filters; /* supported or not */
	bool has_fill;
	uint8_t fill[PEN_CHUNKED_FILL]; /* one element, in the byte order of the
					   file */
};

int pen__h5_data_open(struct pen_h5 *, uint64_t addr, struct pen_h5_data *,
		      const char *where, struct pen_err *);
void pen__h5_data_close(struct pen_h5_data *);
/*
 * Reads an entire list (one axis, or a single value), unpacked and in native
 * byte order; *out is the caller's to fini. For data that is small compared to
 * the samples.
 */
int pen__h5_read(struct pen_h5 *, const struct pen_h5_data *,
		 struct pen_buf *out, const char *where, struct pen_err *);

/* Lists the stored chunks. They do not overlap, and all filters are supported.
 */
int pen__h5_chunks(struct pen_h5 *, const struct pen_h5_data *,
		   struct pen_chunks *, const char *where, struct pen_err *);
/* The array as encoded in a blob; cs: the chunks of a chunked one. */
void pen__h5_put(const struct pen_h5_data *, const struct pen_chunks *cs,
		 struct pen_chunked_put *);

#endif
