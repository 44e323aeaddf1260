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

static int check_process(const struct pen_ranks *r, struct pen_err *err)
{
	if (r->pid == (uint64_t)getpid())
		return 0;
	return pen__fail(err, P_BAD_CALL, "ranks",
			 "a forked child process is not a rank");
}

PEN_API int pen_ranks_barrier(struct pen_ranks *r, struct pen_err *err)
{
	const int rc = check_process(r, err);

	return rc ? rc : pen__comm_barrier(r->comm, err);
}

PEN_API int pen_ranks_agree(struct pen_ranks *r, int rc, struct pen_err *err)
{
	const int bad = check_process(r, rc < 0 ? NULL : err);

	if (bad)
		return rc < 0 ? rc : bad;
	return pen__comm_agree(r->comm, rc, err);
}

PEN_API int pen_ranks_reduce(struct pen_ranks *r, void *data, uint64_t n,
			     enum pen_dtype type, enum pen_reduce how,
			     struct pen_err *err)
{
	const int rc = check_process(r, err);

	return rc ? rc : pen__comm_combine(r->comm, data, n, type, how, err);
}

PEN_API int pen_ranks_broadcast(struct pen_ranks *r, void *data, uint64_t n,
				int root, struct pen_err *err)
{
	const int rc = check_process(r, err);

	return rc ? rc : pen__comm_bcast(r->comm, data, n, root, err);
}
