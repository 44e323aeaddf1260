/* The public interface of ranks (penstock.h). */
#include <unistd.h>

#include "base/mem.h"
#include "comm/comm.h"

PEN_API int pen_ranks_open(struct pen_ranks **out, struct pen_err *err)
{
	struct pen_comm *comm;
	struct pen_ranks *r;
	int rc;

	*out = NULL;
	rc = pen__comm_open(&comm, err);
	if (rc)
		return rc;
	r = pen__calloc(1, sizeof(*r));
	rc = r ? 0 : pen__fail_nomem(err, "ranks", sizeof(*r));
	rc = pen__comm_agree(comm, rc, err);
	if (rc) {
		pen__comm_close(comm);
		pen__free(r);
		return rc;
	}
	r->comm = comm;
	r->pid = (uint64_t)getpid();
	*out = r;
	return 0;
}

PEN_API void pen_ranks_close(struct pen_ranks *r)
{
	if (!r)
		return;
	/* a forked child would leave on behalf of its parent */
	if (r->pid == (uint64_t)getpid())
		pen__comm_close(r->comm);
	pen__free(r);
}

PEN_API int pen_ranks_rank(const struct pen_ranks *r)
{
	return r->comm->rank;
}

PEN_API int pen_ranks_size(const struct pen_ranks *r)
{
	return r->comm->size;
}

PEN_API int pen_ranks_barrier(struct pen_ranks *r, struct pen_err *err)
{
	if (r->pid != (uint64_t)getpid())
		return pen__fail(err, P_BAD_CALL, "ranks",
				 "a forked child process is not a rank");
	return pen__comm_barrier(r->comm, err);
}
