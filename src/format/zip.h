/*
 * Reading the directory of a zip archive. Only what is needed to find the
 * bytes of a member and to be sure that they are its own.
 */
#ifndef PEN_FORMAT_ZIP_H
#define PEN_FORMAT_ZIP_H

#include "format/format.h"

enum { PEN_ZIP_STORED = 0, PEN_ZIP_DEFLATED = 8 };

struct pen_zip_member {
	const char *name; /* not NUL-terminated; lies in the directory */
	uint16_t name_len;
	uint16_t flags, method;
	uint32_t crc;
	uint64_t csize, usize; /* compressed, inflated */
	uint64_t header;       /* where its local header is */
	uint64_t limit;	       /* where the next thing begins */
	uint64_t data;	       /* where its bytes are */
};

struct pen_zip {
	uint8_t *dir;
	struct pen_zip_member *m; /* by position in the file */
	size_t n;
	uint64_t dir_at; /* where the directory begins */
};

/*
 * Reads and checks the directory and every local header: members neither
 * overlap nor contradict their entries. Whether one can be unpacked is asked
 * with pen__zip_usable().
 */
int pen__zip_open(struct pen_zip *, struct pen_peek *, struct pen_err *);
void pen__zip_close(struct pen_zip *);
/* Refuses encryption, unknown methods and sizes deflate cannot reach. */
int pen__zip_usable(const struct pen_zip_member *, const char *where,
		    struct pen_err *);

#endif
