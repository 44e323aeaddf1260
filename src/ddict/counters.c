/*
 * What programs coordinate with: counters, waiting for a key, owners; and
 * upkeep.
 */
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "ddict/dictionary_int.h"

#define NAP_NS 50000u /* first pause while waiting for a key */
#define NAP_MOST_NS 5000000u

static int add_far(struct pen_ddict *d, int owner, struct pen_key k, uint64_t n,
		   uint64_t *old, struct pen_err *err)
{
	const struct pen_value v = { &n, sizeof(n) };
	const struct pen_key_pick one = { NULL, 1 };
	struct pen_remote r = { 0 };
	int rc = pen__remote_make(&r, PEN_OP_ADD, &k, &v, &one, err);

	if (!rc)
		rc = pen__remote_send(d, &r, owner, err);
	if (!rc)
		rc = pen__remote_wait(d, &r, err);
	if (!rc && r.call.reply_len != sizeof(*old))
		rc = pen__fail(err, P_BAD_MESSAGE, "dictionary",
			       "the reply of rank %d is malformed; run one "
			       "version of penstock on all ranks",
			       owner);
	if (!rc)
		memcpy(old, r.call.reply, sizeof(*old));
	pen__remote_fini(&r);
	return rc;
}

PEN_API int pen_ddict_fetch_add(struct pen_ddict *d, struct pen_key k,
				uint64_t n, uint64_t *old, struct pen_err *err)
{
	const int owner = pen__ddict_owner(d, k);

	if (d->width != d->size)
		return pen__fail(err, P_BAD_CALL, "width",
				 "a dictionary with replicas has no counters; "
				 "open it with width=0");
	if (d->seg[owner])
		return pen__shard_add(d->seg[owner], k, n, old, err);
	return add_far(d, owner, k, n, old, err);
}

PEN_API int pen_ddict_wait_for(struct pen_ddict *d, struct pen_key k,
			       uint64_t timeout_ns, struct pen_err *err)
{
	const uint64_t since = pen__now_ns();
	uint64_t nap = NAP_NS;
	int rc;

	while (!(rc = pen_ddict_contains(d, k, err))) {
		const uint64_t passed = pen__now_ns() - since;
		struct timespec t;

		if (passed >= timeout_ns)
			return PEN_AGAIN;
		nap = nap < timeout_ns - passed ? nap : timeout_ns - passed;
		t = (struct timespec){ .tv_nsec = (long)nap };
		nanosleep(&t, NULL);
		nap = nap < NAP_MOST_NS / 2 ? 2 * nap : NAP_MOST_NS;
	}
	return rc < 0 ? rc : 0;
}

PEN_API uint32_t pen_ddict_owner(const struct pen_ddict *d, struct pen_key k)
{
	return (uint32_t)(d->first + pen__ddict_owner(d, k));
}

PEN_API int pen_ddict_compact(struct pen_ddict *d, struct pen_err *err)
{
	return pen__for_all_shards(d, PEN_OP_COMPACT, pen__shard_compact, err);
}
