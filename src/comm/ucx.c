/*
 * The UCX module. Messages are active messages, always with their data (never
 * a rendezvous, which would leave memory of the receiver to the sender), and
 * memory is read by one-sided gets: by the network card where it can, otherwise
 * by the thread of the owner that calls progress().
 *
 * UCX connects to whoever reaches its port. A message counts only with the
 * secret of the job.
 */
#include "comm/ucx.h"

#include <stdio.h>
#include <string.h>
#include <ucp/api/ucp.h>

#include "base/clock.h"

#define AM_ID 1
/* How long close() waits for what was sent, and for what was cancelled. */
#define FLUSH_NS 5000000000u
#define DRAIN_NS 2000000000u

struct greeting {
	unsigned char secret[16];
	int32_t from;
};

struct peer {
	struct pen_ucx *node;
	int rank;
	ucp_ep_h ep;
};

struct exposed {
	struct exposed *next;
	ucp_mem_h memory;
	void *packed; /* its key */
};

struct pen_ucx {
	struct pen_ucx_host host;
	struct greeting greeting;
	ucp_context_h context;
	ucp_worker_h worker;
	struct exposed *exposed;
	struct peer *peers;
	uint64_t pending; /* operations */
};

struct pen_ucx_key {
	struct peer *peer;
	ucp_rkey_h rkey;
};

static int ucx_failed(ucs_status_t st, const char *call, struct pen_err *err)
{
	return pen__fail(err, P_RANK_FAILED, call, "%s: %s", call,
			 ucs_status_string(st));
}

/* --- callbacks of UCX --- */

static ucs_status_t on_message(void *arg, const void *header, size_t header_len,
			       void *data, size_t n,
			       const ucp_am_recv_param_t *param)
{
	struct pen_ucx *u = arg;
	struct greeting g;

	if (header_len != sizeof(g) ||
	    (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV))
		return UCS_OK;
	memcpy(&g, header, sizeof(g));
	if (memcmp(g.secret, u->greeting.secret, sizeof(g.secret)) != 0)
		return UCS_OK;
	u->host.message(u->host.arg, g.from, data, n);
	return UCS_OK;
}

static void on_error(void *arg, ucp_ep_h ep, ucs_status_t st)
{
	struct peer *p = arg;

	(void)ep;
	p->node->host.lost(p->node->host.arg, p->rank, ucs_status_string(st));
}

static void on_sent(void *request, ucs_status_t st, void *op)
{
	/* UCX passes the node through its own request memory */
	struct pen_ucx *u = *(struct pen_ucx **)request;

	(void)st; /* on_error() reports it */
	u->pending--;
	u->host.sent(u->host.arg, op);
	ucp_request_free(request);
}

static void on_landed(void *request, ucs_status_t st, void *op)
{
	struct pen_ucx *u = *(struct pen_ucx **)request;

	u->pending--;
	u->host.landed(u->host.arg, op, st == UCS_OK);
	ucp_request_free(request);
}

/* --- opening --- */

static int make_worker(struct pen_ucx *u, struct pen_err *err)
{
	const ucp_params_t params = {
		.field_mask = UCP_PARAM_FIELD_FEATURES |
			      UCP_PARAM_FIELD_REQUEST_SIZE |
			      UCP_PARAM_FIELD_ESTIMATED_NUM_EPS |
			      UCP_PARAM_FIELD_NAME,
		.features = UCP_FEATURE_AM | UCP_FEATURE_RMA |
			    UCP_FEATURE_WAKEUP,
		.request_size = sizeof(struct pen_ucx *),
		.estimated_num_eps = (size_t)u->host.size,
		.name = "penstock",
	};
	const ucp_worker_params_t worker = {
		.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
		.thread_mode = UCS_THREAD_MODE_SERIALIZED,
	};
	const ucp_am_handler_param_t handler = {
		.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
			      UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
			      UCP_AM_HANDLER_PARAM_FIELD_CB |
			      UCP_AM_HANDLER_PARAM_FIELD_ARG,
		.id = AM_ID,
		.flags = UCP_AM_FLAG_WHOLE_MSG,
		.cb = on_message,
		.arg = u,
	};
	ucp_config_t *config;
	ucs_status_t st;

	st = ucp_config_read(NULL, NULL, &config);
	if (st != UCS_OK)
		return ucx_failed(st, "ucp_config_read", err);
	st = ucp_init(&params, config, &u->context);
	ucp_config_release(config);
	if (st != UCS_OK)
		return ucx_failed(st, "ucp_init", err);
	st = ucp_worker_create(u->context, &worker, &u->worker);
	if (st != UCS_OK)
		return ucx_failed(st, "ucp_worker_create", err);
	st = ucp_worker_set_am_recv_handler(u->worker, &handler);
	return st == UCS_OK ? 0 : ucx_failed(st, "ucp_worker_am", err);
}

static int give_address(struct pen_ucx *u, void **address, size_t *n,
			struct pen_err *err)
{
	ucp_address_t *own;
	ucs_status_t st = ucp_worker_get_address(u->worker, &own, n);

	if (st != UCS_OK)
		return ucx_failed(st, "ucp_worker_get_address", err);
	*address = u->host.alloc(*n, 1);
	if (*address)
		memcpy(*address, own, *n);
	ucp_worker_release_address(u->worker, own);
	return *address ? 0 : pen__fail(err, P_NO_MEMORY, "ucx", "no memory");
}

static void end(struct pen_ucx *u)
{
	if (u->worker)
		ucp_worker_destroy(u->worker);
	while (u->exposed) {
		struct exposed *e = u->exposed;

		u->exposed = e->next;
		ucp_rkey_buffer_release(e->packed);
		(void)ucp_mem_unmap(u->context, e->memory);
		u->host.free(e);
	}
	if (u->context)
		ucp_cleanup(u->context);
	u->host.free(u->peers);
	u->host.free(u);
}

static int ucx_open(const struct pen_ucx_host *host, struct pen_ucx **out,
		    void **address, size_t *n, struct pen_err *err)
{
	struct pen_ucx *u = host->alloc(1, sizeof(*u));
	int rc;

	if (!u)
		return pen__fail(err, P_NO_MEMORY, "ucx", "no memory");
	memset(u, 0, sizeof(*u));
	u->host = *host;
	u->greeting.from = host->rank;
	memcpy(u->greeting.secret, host->secret, sizeof(host->secret));
	u->peers = host->alloc((size_t)host->size, sizeof(*u->peers));
	rc = u->peers ? 0 : pen__fail(err, P_NO_MEMORY, "ucx", "no memory");
	for (int i = 0; i < host->size && !rc; i++)
		u->peers[i] = (struct peer){ .node = u, .rank = i };
	if (!rc)
		rc = make_worker(u, err);
	if (!rc)
		rc = give_address(u, address, n, err);
	if (rc)
		end(u);
	else
		*out = u;
	return rc;
}

static int ucx_connect(struct pen_ucx *u, int rank, const void *address,
		       struct pen_err *err)
{
	const ucp_ep_params_t params = {
		.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
			      UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
			      UCP_EP_PARAM_FIELD_ERR_HANDLER,
		.address = address,
		.err_mode = UCP_ERR_HANDLING_MODE_PEER,
		.err_handler = { .cb = on_error, .arg = &u->peers[rank] },
	};
	const ucs_status_t st =
		ucp_ep_create(u->worker, &params, &u->peers[rank].ep);

	if (st == UCS_OK)
		return 0;
	u->peers[rank].ep = NULL;
	return ucx_failed(st, "ucp_ep_create", err);
}

/* --- operations --- */

static int ucx_descriptor(struct pen_ucx *u)
{
	int fd = -1;

	return ucp_worker_get_efd(u->worker, &fd) == UCS_OK ? fd : -1;
}

static bool ucx_arm(struct pen_ucx *u)
{
	return ucp_worker_arm(u->worker) == UCS_OK;
}

static bool ucx_progress(struct pen_ucx *u)
{
	return ucp_worker_progress(u->worker) != 0;
}

/* What UCX returns for an operation: 0 done, 1 pending, or an error. */
static int started(struct pen_ucx *u, ucs_status_ptr_t r)
{
	if (!r)
		return 0;
	if (UCS_PTR_IS_ERR(r))
		return PEN_EIO;
	*(struct pen_ucx **)r = u;
	u->pending++;
	return 1;
}

static int ucx_send(struct pen_ucx *u, int rank, const void *p, size_t n,
		    void *op)
{
	const ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
				UCP_OP_ATTR_FIELD_USER_DATA |
				UCP_OP_ATTR_FIELD_FLAGS,
		.flags = UCP_AM_SEND_FLAG_EAGER,
		.cb.send = on_sent,
		.user_data = op,
	};

	if (!u->peers[rank].ep)
		return PEN_EIO;
	return started(u,
		       ucp_am_send_nbx(u->peers[rank].ep, AM_ID, &u->greeting,
				       sizeof(u->greeting), p, n, &param));
}

static int ucx_read(struct pen_ucx *u, const struct pen_ucx_key *key,
		    uint64_t from, void *to, size_t n, void *op)
{
	const ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
				UCP_OP_ATTR_FIELD_USER_DATA,
		.cb.send = on_landed,
		.user_data = op,
	};

	if (!key->peer->ep)
		return PEN_EIO;
	return started(
		u, ucp_get_nbx(key->peer->ep, to, n, from, key->rkey, &param));
}

static int ucx_expose(struct pen_ucx *u, const void *p, size_t n,
		      const void **key, size_t *nkey, struct pen_err *err)
{
	const ucp_mem_map_params_t params = {
		.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
			      UCP_MEM_MAP_PARAM_FIELD_LENGTH |
			      UCP_MEM_MAP_PARAM_FIELD_PROT,
		.address = (void *)(uintptr_t)p,
		.length = n,
		.prot = UCP_MEM_MAP_PROT_LOCAL_READ |
			UCP_MEM_MAP_PROT_REMOTE_READ,
	};
	struct exposed *e = u->host.alloc(1, sizeof(*e));
	ucs_status_t st;

	if (!e)
		return pen__fail(err, P_NO_MEMORY, "ucx", "no memory");
	st = ucp_mem_map(u->context, &params, &e->memory);
	if (st != UCS_OK) {
		u->host.free(e);
		return ucx_failed(st, "ucp_mem_map", err);
	}
	st = ucp_rkey_pack(u->context, e->memory, &e->packed, nkey);
	if (st != UCS_OK) {
		(void)ucp_mem_unmap(u->context, e->memory);
		u->host.free(e);
		return ucx_failed(st, "ucp_rkey_pack", err);
	}
	e->next = u->exposed;
	u->exposed = e;
	*key = e->packed;
	return 0;
}

static int ucx_import(struct pen_ucx *u, int rank, const void *key,
		      struct pen_ucx_key **out, struct pen_err *err)
{
	struct pen_ucx_key *k;
	ucs_status_t st;

	if (!u->peers[rank].ep)
		return pen__fail(err, P_RANK_FAILED, "ucx", "not connected");
	k = u->host.alloc(1, sizeof(*k));
	if (!k)
		return pen__fail(err, P_NO_MEMORY, "ucx", "no memory");
	k->peer = &u->peers[rank];
	st = ucp_ep_rkey_unpack(k->peer->ep, key, &k->rkey);
	if (st != UCS_OK) {
		u->host.free(k);
		return ucx_failed(st, "ucp_ep_rkey_unpack", err);
	}
	*out = k;
	return 0;
}

static void ucx_forget(struct pen_ucx *u, struct pen_ucx_key *k)
{
	if (!k)
		return;
	ucp_rkey_destroy(k->rkey);
	u->host.free(k);
}

/* --- the end --- */

static void ucx_drop(struct pen_ucx *u, int rank)
{
	const ucp_request_param_t force = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
		.flags = UCP_EP_CLOSE_FLAG_FORCE,
	};
	ucp_ep_h ep = u->peers[rank].ep;
	ucs_status_ptr_t r;

	u->peers[rank].ep = NULL;
	if (!ep)
		return;
	r = ucp_ep_close_nbx(ep, &force);
	if (UCS_PTR_IS_PTR(r))
		ucp_request_free(r);
}

/* Progresses until the request is over, or for some time. */
static void await(struct pen_ucx *u, ucs_status_ptr_t r, uint64_t ns)
{
	const uint64_t until = pen__now_ns() + ns;

	if (!UCS_PTR_IS_PTR(r))
		return;
	while (ucp_request_check_status(r) == UCS_INPROGRESS &&
	       pen__now_ns() < until)
		(void)ucp_worker_progress(u->worker);
	ucp_request_free(r);
}

static bool ucx_close(struct pen_ucx *u)
{
	const ucp_request_param_t none = { 0 };
	const uint64_t until = pen__now_ns() + FLUSH_NS + DRAIN_NS;

	await(u, ucp_worker_flush_nbx(u->worker, &none), FLUSH_NS);
	for (int i = 0; i < u->host.size; i++)
		ucx_drop(u, i);
	while (u->pending && pen__now_ns() < until)
		(void)ucp_worker_progress(u->worker);
	if (u->pending) /* UCX may still use it: everything is kept */
		return false;
	end(u);
	return true;
}

__attribute__((visibility(
	"default"))) extern const struct pen_ucx_module pen_ucx_module;
const struct pen_ucx_module pen_ucx_module = {
	.version = PEN_UCX_VERSION,
	.open = ucx_open,
	.connect = ucx_connect,
	.descriptor = ucx_descriptor,
	.arm = ucx_arm,
	.progress = ucx_progress,
	.send = ucx_send,
	.read = ucx_read,
	.expose = ucx_expose,
	.import = ucx_import,
	.forget = ucx_forget,
	.drop = ucx_drop,
	.close = ucx_close,
};
