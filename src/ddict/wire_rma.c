/*
 * One-sided MPI calls: measured but never used. A value is found by its key in
 * the memory of its owner; from another rank that takes several gets in
 * sequence, each a round trip, whereas a request takes one round trip for an
 * entire batch. Debian's Open MPI has no windows over TCP, and other libraries
 * emulate them with messages that the owner must help to process. What this
 * machine supports is reported, so that nobody has to guess.
 */
#include "ddict/wire_int.h"

#include "base/show.h"

static int rma_open(struct pen_wire *w, struct pen_comm *comm,
		    struct pen_err *err)
{
	double us = 0;
	int rc;

	if (comm->nnodes == 1)
		return pen__fail(err, P_NO_TRANSPORT, "rma",
				 "no benefit within one host");
	rc = pen__comm_window(comm, pen__wire_partner(w), &us, err);
	if (rc)
		return rc;
	rc = pen__comm_bcast(comm, &us, sizeof(us), 0, err);
	if (rc)
		return rc;
	return pen__fail(err, P_NO_TRANSPORT, "rma",
			 "%s per get, several gets per key; not used",
			 pen__show_time(us * 1e-6).s);
}

const struct pen_transport pen__wire_rma = {
	.name = "rma",
	.open = rma_open,
};
