/* Sums the estimates of all subgraphs of a pass, and adds the figures of the pass as a whole: memory over time, and
 * messages between the stages of a pipeline.  pass_uncertainty.c has the ± of the result. */
#include "estimate/pass_estimate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/xalloc.h"

/* ---- memory ---- */

static double batch_of(const struct partition *partition)
{
    return partition->graph->batch > 0 ? partition->graph->batch : 1;
}

/* The number of devices that the KV cache is divided by: at most its heads. */
static double kv_devices(const struct partition *partition, int devices)
{
    double heads = partition->heads_kv > 0 ? (double)partition->heads_kv : devices;
    return fmin(devices, heads);
}

/* Activations on each device while a subgraph runs. */
static inline double live_bytes(const struct partition *partition, size_t subgraph,
                                const struct precision_widths *widths, int devices)
{
    const struct partition_live *live = &partition->live[subgraph];
    double columns = live->columns, heads_kv = live->heads_kv;
    if (devices > 1) {
        columns /= devices;
        heads_kv /= kv_devices(partition, devices);
    }
    double elements = live->activations + columns + heads_kv;
    return elements * widths->activation + live->fixed_bytes +
           live->quantized * (widths->keeps_stored ? 1 : widths->activation);
}

/* The weights do not depend on the batch; everything else grows with it. */
static double largest_batch(const struct estimate_memory *memory, double batch)
{
    double one = (memory->activations_peak + memory->workspace_peak + memory->kv_cache) / batch;
    double left = memory->capacity - memory->weights;
    if (!is_known(memory->capacity) || !is_known(one) || one <= 0)
        return UNKNOWN;
    return left > 0 ? floor(left / one) : 0;
}

void estimate_memory_reserve(struct estimate_memory *memory, double kv_cache, double batch)
{
    memory->total_peak += kv_cache - memory->kv_cache;
    memory->kv_cache = kv_cache;
    memory->fits = !(memory->total_peak > memory->capacity);
    memory->largest_batch = largest_batch(memory, batch);
}

/* Additional bytes of the last matrix, which is wider than the others. */
static double head_bytes(const struct partition *partition, const struct rates *rates, int devices)
{
    double more = rates->format.head - rates->widths.weight, weights = 0;
    for (size_t i = 0; more > 0 && i < partition->count; i++)
        if (partition->subgraphs[i].component == DECODER_HEAD)
            weights += partition->subgraphs[i].cost.weights.weights;
    return more > 0 ? more * weights / devices : 0;
}

/* Weights and KV cache of the layers first..end-1 of by_layer on one device of a stage. */
static void add_layers(const struct partition *partition, const struct precision_widths *widths,
                       int first, int end, int devices, struct estimate_memory *to)
{
    for (int i = first; i < end; i++) {
        const struct partition_layer *layer = &partition->by_layer[i];
        double sharded = graph_bytes(&layer->model_sharded, widths);
        to->weights += graph_bytes(&layer->model, widths) - sharded + sharded / devices;
        to->kv_cache += graph_bytes(&layer->cache, widths) / kv_devices(partition, devices);
    }
}

static int stage_of(const struct partition *partition, size_t subgraph, int stages)
{
    int32_t layer = partition->subgraphs[subgraph].layer;
    if (layer < 0)
        return subgraph < partition->first_layered ? 0 : stages - 1;
    return pipeline_stage_of(layer, partition->layers, stages);
}

/* Memory of a pipeline: that of the stage with the highest peak.  KV cache of all sequences in flight, activations of
 * one micro-batch. */
static void estimate_stages_memory(const struct rates *rates, struct pass_estimate *estimate)
{
    const struct partition *partition = estimate->partition;
    const struct precision_widths *widths = &rates->widths;
    int stages = estimate->config.stages, devices = estimate->config.devices, first = 0;
    double in_flight = estimate->config.sequences / batch_of(partition);
    struct estimate_memory all[PIPELINE_STAGES_MAX] = {0}, *out = &estimate->memory;
    for (size_t i = 0; i < partition->count; i++) {
        struct estimate_memory *stage = &all[stage_of(partition, i, stages)];
        double bytes = live_bytes(partition, i, widths, devices);
        if (bytes > stage->activations_peak) {
            stage->activations_peak = bytes;
            stage->peak_subgraph = i;
        }
    }
    for (int s = 0; s < stages; s++) {
        int end = first;
        while (end < partition->layers && pipeline_stage_of(end, partition->layers, stages) == s)
            end++;
        add_layers(partition, widths, s ? first + 1 : 0,
                   s < stages - 1 ? end + 1 : partition->layers + 2, devices, &all[s]);
        all[s].weights += s == stages - 1 ? head_bytes(partition, rates, devices) : 0;
        all[s].kv_cache *= in_flight > 1 ? in_flight : 1;
        all[s].total_peak = all[s].weights + all[s].activations_peak + all[s].kv_cache;
        estimate->stages[s].layers = end - first;
        estimate->stages[s].memory_peak = all[s].total_peak;
        if (s == 0 || all[s].total_peak > out->total_peak)
            *out = all[s];
        first = end;
    }
    out->capacity = rates->capacity;
    out->fits = !(out->total_peak > out->capacity);
    out->largest_batch = largest_batch(out, fmax(batch_of(partition), estimate->config.sequences));
}

/* Everything except the timeline. */
static void estimate_memory(const struct partition *partition, const struct rates *rates,
                            int devices, struct estimate_memory *out)
{
    const struct precision_widths *widths = &rates->widths;
    double sharded = graph_bytes(&partition->model_sharded, widths);
    *out = (struct estimate_memory){
        .weights = graph_bytes(&partition->model, widths) - sharded + sharded / devices +
                   head_bytes(partition, rates, devices),
        .kv_cache = graph_bytes(&partition->cache, widths) / kv_devices(partition, devices),
        .capacity = rates->capacity,
    };
    for (size_t i = 0; i < partition->count; i++) {
        double bytes = live_bytes(partition, i, widths, devices);
        if (bytes > out->activations_peak) {
            out->activations_peak = bytes;
            out->peak_subgraph = i;
        }
    }
    out->total_peak = out->weights + out->activations_peak + out->workspace_peak + out->kv_cache;
    out->fits = !(out->total_peak > out->capacity);
    out->largest_batch = largest_batch(out, batch_of(partition));
}

/* ---- subgraphs ---- */

/* A unique subgraph on this device. */
struct unique {
    struct roofline_work work;
    struct subgraph_estimate alone; /* without waiting times and the power limit */
    double product_s;               /* its products at the peak */
    enum graph_op op;
};

struct pass_rows {
    struct rates rates;
    const bool *repeats;            /* see struct partition; NULL: no rows of a preceding pass */
    struct subgraph_estimate *rows; /* by unique subgraph, in the same block of memory */
    struct unique unique[];
};

static void estimate_row(const struct partition *partition, size_t number,
                         const struct rates *rates, int devices, struct unique *out)
{
    const struct subgraph *subgraph = &partition->subgraphs[partition->unique[number]];
    out->work = roofline_work(subgraph, partition, rates, devices);
    roofline_estimate(subgraph, &out->work, rates, devices, &out->alone);
    out->product_s = 2 * subgraph->cost.macs / roofline_product_flops(subgraph, rates);
    out->op = subgraph->op;
}

static bool is_launched(const struct rates *rates)
{
    return rates->has_kernels && !rates->timings; /* timed operations include it */
}

/* Host time between two steps of an LLM. */
static double scheduler_s(const struct partition *partition, const struct rates *rates)
{
    const struct runtime_steps *steps = runtime_steps(rates->runtime);
    bool has_steps = is_launched(rates) && partition->is_causal;
    return has_steps ? steps->host_s + steps->sequence_s * batch_of(partition) : 0;
}

/* Sums over the rows of all subgraphs, in order. */
struct row_sums {
    double launches, latency_s, joules, idle_j, active_j;
    double limited_j; /* active, of one device */
};

static struct row_sums sum_rows(const struct partition *partition,
                                const struct subgraph_estimate *rows, int devices)
{
    struct row_sums sums = {0};
    for (size_t i = 0; i < partition->count; i++) {
        const struct subgraph_estimate *row = &rows[partition->unique_of[i]];
        double active_j = row->joules.total - row->joules.idle;
        sums.launches += row->launches;
        sums.latency_s += row->latency_s;
        sums.joules += row->joules.total;
        sums.idle_j += row->joules.idle;
        sums.active_j += active_j;
        sums.limited_j += devices > 1 ? active_j / devices : active_j;
    }
    return sums;
}

/* Host time per launch, times `factor`. */
static double host_per_launch(const struct partition *partition, const struct rates *rates,
                              double factor)
{
    double launch_s = rates->host.launch_s, host_s = factor * runtime_at(rates->runtime)->host_s;
    host_s *= is_known(launch_s) ? launch_s / RUNTIME_HOST_UNIT_S : 1;
    return partition->is_causal ? fmax(host_s, runtime_steps(rates->runtime)->operator_s) : host_s;
}

/* The host launches kernels while the devices work: where it takes longer, the devices wait for each launch.  The host
 * time between two steps of an LLM is always exposed.  *host_s: additional wait for a host that is one standard
 * deviation slower than the assumed one; a faster one saves less. */
static double wait_per_launch(const struct partition *partition, const struct rates *rates,
                              const struct row_sums *sums, double step_s, double *host_s)
{
    *host_s = 0;
    if (!is_launched(rates) || !(sums->launches > 0))
        return 0;
    double each_s = sums->latency_s / sums->launches;
    double usual_s = fmax(each_s, host_per_launch(partition, rates, 1));
    double slow_s = fmax(each_s, host_per_launch(partition, rates, exp(rates->host.spread)));
    *host_s = sums->launches * (slow_s - usual_s);
    return usual_s - each_s + step_s / sums->launches;
}

void estimate_totals_add(struct estimate_totals *sum, const struct estimate_totals *more,
                         double times)
{
    sum->macs += times * more->macs;
    sum->flops += times * more->flops;
    sum->bytes += times * more->bytes;
    sum->cached_bytes += times * more->cached_bytes;
    sum->latency_s += times * more->latency_s;
    sum->wasted_j += times * more->wasted_j;
    estimate_joules_add(&sum->joules, &more->joules, times);
    estimate_traffic_add(&sum->traffic, &more->traffic, times);
}

/* Where kernels of a runtime attain more than the shares of the device, they set the bound. */
static void lower_to_attained(const struct partition *partition, const struct rates *rates,
                              const struct estimate_config *config, const struct row_sums *sums,
                              struct subgraph_estimate *rows)
{
    struct roofline_limit by = {.joules = 1, .time = 1};
    if (config->max.latency_s < sums->latency_s)
        by.time = config->max.latency_s / sums->latency_s;
    double left_j = config->max.joules - by.time * sums->idle_j;
    if (left_j < sums->active_j)
        by.joules = left_j / sums->active_j;
    for (size_t k = 0; (by.time < 1 || by.joules < 1) && k < partition->unique_count; k++)
        roofline_apply_limit(rates, &by, config->devices, &rows[k]);
}

/* The highest power of a subgraph, limited to the power limit; UNKNOWN if that of one is unknown. */
static double peak_power(const struct subgraph_estimate *rows, size_t count, double limit_w)
{
    double peak = 0;
    for (size_t k = 0; k < count; k++) {
        const struct subgraph_estimate *row = &rows[k];
        double watts = row->joules.total / row->latency_s;
        if (row->latency_s > 0 && is_known(peak) && !(watts <= peak))
            peak = watts;
    }
    return peak > limit_w ? limit_w : peak;
}

/* Fork and join of the threads.  Attributed to the first subgraph, so that rows add up. */
static void wait_for_threads(const struct partition *partition, const struct rates *rates,
                             int devices, struct subgraph_estimate *rows)
{
    size_t alike = 0;
    size_t first = partition->count ? partition->unique_of[0] : 0;
    for (size_t i = 0; rates->timings && i < partition->count; i++)
        alike += partition->unique_of[i] == first;
    if (alike)
        roofline_wait(rates, timed_pass_s(rates->timings) / (double)alike, devices, &rows[first]);
}

static void add_to_stage(struct estimate_stage *stage, const struct subgraph_estimate *row)
{
    stage->busy_s += row->latency_s;
    stage->active_j += row->joules.total - row->joules.idle;
}

/* ---- messages between stages ---- */

static size_t first_subgraph(const struct partition *partition, int stage, int stages)
{
    size_t i = 0;
    while (i + 1 < partition->count && stage_of(partition, i, stages) != stage)
        i++;
    return i;
}

/* Activations produced before a stage and used in it or later. */
static double message_bytes(const struct partition *partition, const struct rates *rates, int stage,
                            int stages)
{
    double elements = 0;
    for (size_t i = 0; i < partition->tensor_count; i++) {
        const struct partition_tensor *tensor = &partition->tensors[i];
        if (stage_of(partition, tensor->from, stages) < stage &&
            stage_of(partition, tensor->to, stages) >= stage)
            elements += tensor->amount.activations;
    }
    return elements * rates->widths.activation;
}

/* A message is read from one memory and written to another, once by each device of the group, whether it is sent or
 * gathered.  Its joules belong to the receiving row. */
static void send_between_stages(const struct rates *rates, struct pass_estimate *out)
{
    const struct partition *partition = out->partition;
    int stages = out->config.stages, devices = out->config.devices;
    for (int s = 0; s + 1 < stages; s++) {
        double bytes = message_bytes(partition, rates, s + 1, stages);
        double joules = ROOFLINE_LINK_ENDS * devices * bytes * rates->joules_per_byte.value;
        struct estimate_totals more = {.joules = {.link = joules, .total = joules},
                                       .traffic = {.link = devices * bytes}};
        estimate_totals_add(&out->total, &more, 1);
        out->stages[s].send_s = collective_send_s(&rates->link, bytes, devices);
        out->stages[s].active_j += joules;
        if (out->rows)
            estimate_joules_add(&out->rows[first_subgraph(partition, s + 1, stages)].joules,
                                &more.joules, 1);
    }
}

/* Seconds of the host between two steps, and the additional ones of a slower host. */
struct host_times {
    double step_s, slower_s;
};

/* Rows of the unique subgraphs, with waiting times and the power limit. */
static void make_rows(const struct partition *partition, const struct estimate_config *config,
                      struct pass_rows *pass, struct row_sums *sums, struct host_times *host)
{
    const struct rates *rates = &pass->rates;
    struct subgraph_estimate *rows = pass->rows;
    int devices = config->devices;
    for (size_t k = 0; k < partition->unique_count; k++) {
        if (!pass->repeats || !pass->repeats[k])
            estimate_row(partition, k, rates, devices, &pass->unique[k]);
        rows[k] = pass->unique[k].alone;
    }
    wait_for_threads(partition, rates, devices, rows);
    *sums = sum_rows(partition, rows, devices);
    bool is_staged = config->stages > 1; /* the scheduler then overlaps with the stages */
    host->step_s = scheduler_s(partition, rates);
    double wait_s =
        wait_per_launch(partition, rates, sums, is_staged ? 0 : host->step_s, &host->slower_s);
    for (size_t k = 0; wait_s > 0 && k < partition->unique_count; k++)
        roofline_wait(rates, wait_s * rows[k].launches, devices, &rows[k]);
    if (wait_s > 0)
        *sums = sum_rows(partition, rows, devices);
    struct roofline_limit limit = roofline_limit(rates, sums->limited_j, sums->latency_s);
    for (size_t k = 0; limit.joules < 1 && k < partition->unique_count; k++)
        roofline_apply_limit(rates, &limit, devices, &rows[k]);
    if (limit.joules < 1)
        *sums = sum_rows(partition, rows, devices);
}

/* All that adds up over subgraphs, also as an array of whole blocks.  Ratios are weighted, see set_ratios. */
enum { BLOCK = 16 }; /* numbers that vector registers hold */
struct addend_parts {
    struct estimate_totals totals;
    struct pass_uncertainty uncertainty;
};
enum { BLOCKS = (sizeof(struct addend_parts) / sizeof(double) + BLOCK - 1) / BLOCK };
union addend {
    double numbers[BLOCKS][BLOCK];
    struct addend_parts parts;
};

static void set_addend(const struct unique *one, const struct subgraph_estimate *row, int devices,
                       union addend *out)
{
    out->parts.totals = (struct estimate_totals){
        .latency_s = row->latency_s,
        .macs = devices * one->work.macs,
        .flops = row->flops,
        .bytes = row->bytes,
        .cached_bytes = row->cached_bytes,
        .wasted_j = row->joules.idle * (1 - row->utilization),
        .joules = row->joules,
        .utilization = row->joules.total * row->utilization,
        .mfu = one->product_s,
    };
    out->parts.totals.bound_counts[row->bound] = 1;
    estimate_traffic_add(&out->parts.totals.traffic, &one->work.traffic, devices);
    out->parts.uncertainty = pass_uncertainty_of(one->op, row);
}

static void add_block(const struct partition *partition, const union addend *addends, size_t block,
                      double *restrict out)
{
    double sum[BLOCK] = {0};
    for (size_t i = 0; i < partition->count; i++) {
        const double *more = addends[partition->unique_of[i]].numbers[block];
#pragma GCC unroll 16
        for (size_t k = 0; k < BLOCK; k++)
            sum[k] += more[k];
    }
    memcpy(out, sum, sizeof sum);
}

static void add_all(const struct partition *partition, const struct pass_rows *pass, int devices,
                    union addend *sum)
{
    union addend *addends = xmalloc((partition->unique_count + 1) * sizeof *addends);
    for (size_t k = 0; k < partition->unique_count; k++)
        set_addend(&pass->unique[k], &pass->rows[k], devices, &addends[k]);
    for (size_t b = 0; b < BLOCKS; b++)
        add_block(partition, addends, b, sum->numbers[b]);
    free(addends);
}

/* Each unique subgraph is computed once.  Subgraphs are still added one by one and in order, so that the sums equal
 * those over a list of all rows to the last bit. */
static void sum_subgraphs(struct pass_rows *pass, struct pass_uncertainty *uncertainty,
                          struct pass_estimate *out)
{
    const struct rates *rates = &pass->rates;
    const struct partition *partition = out->partition;
    int devices = out->config.devices, stages = out->config.stages;
    union addend sum = {0};
    struct row_sums sums;
    struct host_times host;
    make_rows(partition, &out->config, pass, &sums, &host);
    if (out->config.is_bound)
        lower_to_attained(partition, rates, &out->config, &sums, pass->rows);
    add_all(partition, pass, devices, &sum);
    for (size_t i = 0; (out->rows || stages > 1) && i < partition->count; i++) {
        const struct subgraph_estimate *row = &pass->rows[partition->unique_of[i]];
        if (out->rows)
            out->rows[i] = *row;
        if (stages > 1)
            add_to_stage(&out->stages[stage_of(partition, i, stages)], row);
    }
    *uncertainty = sum.parts.uncertainty;
    uncertainty->host_s = host.slower_s;
    out->host_s = stages > 1 ? host.step_s : 0;
    out->total = sum.parts.totals;
    out->total.peak_w =
        peak_power(pass->rows, partition->unique_count, devices * rates->limit_w.value);
}

static void set_ratios(const struct rates *rates, int devices, struct pass_estimate *out)
{
    struct estimate_totals *total = &out->total;
    double all = devices * total->latency_s, joules = total->joules.total;
    total->average_w = total->latency_s > 0 ? joules / total->latency_s : UNKNOWN;
    total->utilization = joules > 0 ? total->utilization / joules : UNKNOWN;
    total->efficiency = joules > 0 ? (joules - total->joules.idle) / joules : UNKNOWN;
    /* So far these are the seconds needed at the peak; replicated work does not count. */
    total->mfu = all > 0 ? total->mfu / all : UNKNOWN;
    double moved = total->bytes - total->cached_bytes;
    if (out->config.is_bound) /* runtimes may keep more in caches */
        moved = fmin(moved, all * rates->bytes_per_s.value);
    total->mbu = all > 0 ? moved / (all * rates->bytes_per_s.value) : UNKNOWN;
    if (out->partition->count == 0)
        total->peak_w = UNKNOWN;
}

static enum err check_stages(const struct partition *partition, int stages, struct error *why)
{
    if (stages > 1 && (!partition->layers || !partition->is_decoder))
        return err_set(why, ERR_BAD_VALUE,
                       "%.100s: pipeline parallelism needs the layers of a decoder",
                       partition->graph->name);
    if (stages > partition->layers && stages > 1)
        return err_set(why, ERR_BAD_VALUE,
                       "%.100s: %d stages of pipeline parallelism, but %d layers",
                       partition->graph->name, stages, partition->layers);
    return ERR_OK;
}

static enum err check_devices(const struct partition *partition, const struct hardware *hardware,
                              const struct rates *rates, int devices, int stages, struct error *why)
{
    if (devices < 1)
        return err_set(why, ERR_BAD_VALUE, "%d devices: at least 1 is needed", devices);
    if (devices * stages > 1 && !is_known(rates->link_bytes_per_s.value))
        return err_set(why, ERR_BAD_VALUE,
                       "%s: no link between devices stated: it cannot share a model", hardware->id);
    if (devices > 1 && !(partition->sharded_macs > 0))
        return err_set(why, ERR_BAD_VALUE, "%.100s: tensor parallelism divides none of it",
                       partition->graph->name);
    if (devices > 1 && partition->heads > 0 && partition->heads % devices)
        return err_set(why, ERR_BAD_VALUE,
                       "%.100s: %d devices do not divide its %lld attention heads",
                       partition->graph->name, devices, (long long)partition->heads);
    if (devices > 1 && partition->features % devices)
        return err_set(why, ERR_BAD_VALUE,
                       "%.100s: %d devices do not divide the %lld features of its scans",
                       partition->graph->name, devices, (long long)partition->features);
    return check_stages(partition, stages, why);
}

static void estimate_detail(const struct rates *rates, int devices, struct pass_estimate *out)
{
    const struct partition *partition = out->partition;
    struct estimate_memory *memory = &out->memory;
    out->rows = xmalloc((partition->count + 1) * sizeof *out->rows);
    memory->timeline = xmalloc((partition->count + 1) * sizeof *memory->timeline);
    for (size_t i = 0; i < partition->count; i++)
        memory->timeline[i] = live_bytes(partition, i, &rates->widths, devices);
    out->concurrency = partition_concurrency(partition, batch_of(partition));
}

/* Looks up the rates that the runtime attains on the device; they are the same for a pass that continues another. */
static enum err find_rates(const struct partition *partition, const struct hardware *hardware,
                           const struct estimate_config *config, struct rates *rates,
                           struct error *why)
{
    enum err err = rates_of(hardware, config->precision, config->runtime, rates, why);
    if (!err)
        err = check_devices(partition, hardware, rates, config->devices, config->stages, why);
    if (err)
        return err;
    rates->host = runtime_host(config->runtime, hardware, config->host_launch_s);
    if (!partition->is_causal)
        rates_quantize_activations(rates);
    if (config->keeps_stored)
        rates_keep_stored(rates, &partition->graph->file);
    rates->held = graph_bytes(&partition->model, &rates->widths);
    return ERR_OK;
}

/* Resolves the defaults of the configuration, and allocates the rows. */
static enum err prepare(const struct partition *partition, const struct hardware *hardware,
                        struct estimate_config *config, struct pass_rows **rows, struct error *why)
{
    bool is_first = !*rows || !partition->repeats;
    size_t count = partition->unique_count;
    struct pass_rows *room =
        xrealloc(*rows, sizeof *room + count * (sizeof *room->unique + sizeof *room->rows));
    room->rows = (struct subgraph_estimate *)&room->unique[count];
    *rows = room;
    config->devices = config->devices ? config->devices : 1;
    config->stages = config->stages ? config->stages : 1;
    room->repeats = is_first ? NULL : partition->repeats;
    enum err err = is_first ? find_rates(partition, hardware, config, &room->rates, why) : ERR_OK;
    if (err) {
        free(room);
        *rows = NULL;
    }
    return err;
}

static enum err estimate_pass(const struct partition *partition, const struct hardware *hardware,
                              const struct estimate_config *config, struct pass_rows **rows,
                              bool has_detail, struct pass_estimate *out, struct error *why)
{
    struct pass_uncertainty uncertainty;
    *out = (struct pass_estimate){.partition = partition, .hardware = hardware, .config = *config};
    enum err err = prepare(partition, hardware, &out->config, rows, why);
    if (err)
        return err;
    const struct rates *rates = &(*rows)->rates;
    int devices = out->config.devices, stages = out->config.stages;
    out->used = rates->used;
    out->params = partition->parameters;
    if (stages > 1)
        estimate_stages_memory(rates, out);
    else
        estimate_memory(partition, rates, devices, &out->memory);
    if (has_detail)
        estimate_detail(rates, devices, out);
    sum_subgraphs(*rows, &uncertainty, out);
    if (stages > 1)
        send_between_stages(rates, out);
    set_ratios(rates, devices, out);
    pass_uncertainty_set(&uncertainty, rates, out);
    return ERR_OK;
}

enum err pass_estimate_make(const struct partition *partition, const struct hardware *hardware,
                            const struct estimate_config *config, struct pass_rows **rows,
                            bool has_detail, struct pass_estimate *out, struct error *why)
{
    struct pass_rows *own = NULL;
    enum err err =
        estimate_pass(partition, hardware, config, rows ? rows : &own, has_detail, out, why);
    free(own);
    return err;
}

void pass_estimate_lower(const struct partition *partition, const struct hardware *hardware,
                         const struct estimate_config *config, struct pass_rows **rows,
                         struct pass_bound *cost)
{
    struct estimate_config own = *config;
    struct row_sums sums;
    struct host_times host;
    if (prepare(partition, hardware, &own, rows, NULL) != ERR_OK)
        return;
    make_rows(partition, &own, *rows, &sums, &host);
    cost->latency_s = fmin(cost->latency_s, sums.latency_s);
    cost->joules = fmin(cost->joules, sums.joules);
}

void pass_estimate_release(struct pass_estimate *estimate)
{
    free(estimate->rows);
    free(estimate->memory.timeline);
    *estimate = (struct pass_estimate){0};
}
