/*
 * Reads the directory of a zip archive: what is needed to find the bytes of a
 * member and to be sure that they belong to it.
 */
#ifndef PEN_FORMAT_ZIP_H
#define PEN_FORMAT_ZIP_H

#include "format/format.h"

enum { PEN_ZIP_STORED = 0, PEN_ZIP_DEFLATED = 8 };

struct pen_zip_member {
	const char *name; /* not NUL-terminated; points into dir */
	uint16_t name_len;
	uint16_t flags, method;
	uint32_t crc;
	uint64_t csize, usize; /* compressed, inflated */
	uint64_t header;       /* offset of its local header */
	uint64_t limit;	       /* start of the next member or the directory */
	uint64_t data;	       /* offset of its bytes */
};

struct pen_zip {
	uint8_t *dir;
	struct pen_zip_member *m; /* by position in the file */
	size_t n;
	uint64_t dir_at; /* offset of the directory */
};

/*
 * Reads and checks the directory and every local header: members must not
 * overlap or contradict their entries. pen__zip_usable() checks whether one can
 * be unpacked.
 */
int pen__zip_open(struct pen_zip *, struct pen_peek *, struct pen_err *);
void pen__zip_close(struct pen_zip *);
/* Rejects encryption, unknown methods and sizes that deflate cannot reach. */
int pen__zip_usable(const struct pen_zip_member *, const char *where,
		    struct pen_err *);

#endif
