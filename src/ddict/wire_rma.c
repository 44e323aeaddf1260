/*
 * One-sided calls of MPI: looked at and never taken. A value is found by its
 * key, in the memory of its owner; to do that from outside takes several gets
 * one after another, each a round trip, where a request takes one for a whole
 * batch. Over TCP the MPI of Debian has no windows at all, and others make them
 * of messages that the owner has to take part in. What a machine has is said,
 * so that nobody has to guess.
 */
#include "ddict/wire_int.h"

#include "base/show.h"

static int rma_open(struct pen_wire *w, struct pen_comm *comm,
		    struct pen_err *err)
{
	double us = 0;
	int rc;

	if (comm->nnodes == 1)
		return pen__fail(err, PEN_ENOTSUP, "rma",
				 "of no use within one host");
	rc = pen__comm_window(comm, pen__wire_partner(w), &us, err);
	if (rc)
		return rc;
	rc = pen__comm_bcast(comm, &us, sizeof(us), 0, err);
	if (rc)
		return rc;
	return pen__fail(err, PEN_ENOTSUP, "rma",
			 "%s a get, several to find one key; not taken",
			 pen__show_time(us * 1e-6).s);
}

const struct pen_transport pen__wire_rma = {
	.name = "rma",
	.open = rma_open,
};
