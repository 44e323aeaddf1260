/*
 * Reads an entire file next to an object: the index that some formats keep in
 * separate files. For indexing only. Rejects anything that is not a regular
 * file (a pipe would block forever) and files larger than the caller's limit.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/files.h"

#include "base/show.h"

#define STEP ((size_t)64 << 10)

static int read_all(int fd, const char *path, struct pen_buf *out,
		    struct pen_err *err)
{
	uint8_t *piece = pen__alloc(STEP, 1);
	ssize_t n = 1;
	int rc = piece ? 0 : pen__fail_nomem(err, path, STEP);

	while (!rc && n) {
		n = read(fd, piece, STEP);
		if (n > 0)
			pen__buf_put(out, piece, (size_t)n);
		else if (n < 0 && errno != EINTR)
			rc = pen__fail_sys(err, errno, path,
					   "cannot read the file");
		if (out->bad)
			rc = pen__fail_nomem(err, path, STEP);
	}
	pen__free(piece);
	return rc;
}

int pen__files_read_whole(struct pen_store *st, const char *path,
			  uint64_t limit, struct pen_buf *out,
			  struct pen_err *err)
{
	struct stat sb;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc;

	(void)st;
	if (fd < 0 && pen__file_code(errno) == PEN_ENOTFOUND)
		return pen__fail(err, P_NOT_FOUND, path, "does not exist");
	if (fd < 0)
		return pen__fail_sys(err, errno, path, "cannot open the file");
	if (fstat(fd, &sb) < 0)
		rc = pen__fail_sys(err, errno, path, "cannot read the file");
	else if (!S_ISREG(sb.st_mode) || (uint64_t)sb.st_size > limit)
		rc = pen__fail(
			err, P_BAD_INDEX, path,
			"not an index: not a regular file, or larger than %s",
			pen__show_bytes((double)limit).s);
	else
		rc = read_all(fd, path, out, err);
	close(fd);
	return rc;
}
