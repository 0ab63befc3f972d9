/*
 * A server with several threads that dumps its computations and never stops because of the dump: if the disk is full,
 * it prints one message and continues without a dump. The step number is the request number, so that two runs agree
 * whichever thread handles a request.
 *
 *     example_server DUMP [REQUESTS [THREADS]]
 *     fxtap compare DUMP OTHER_DUMP
 *
 * Exit status: 0, also if the dump was stopped; 2 on invalid usage.
 */
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fxtap/dump.h"
#include "fxtap/graph.h"

namespace {

/* ---- RAII classes for fxtap's handles ---- */

struct Error : std::runtime_error {
    Error() : std::runtime_error(fxtap_error_message()) {}
};

void check(fxtap_status status)
{
    if (status != FXTAP_OK) {
        throw Error();
    }
}

struct CloseDump {
    void operator()(fxtap_dump *dump) const { fxtap_dump_close(dump); }
};
struct FreeGraph {
    void operator()(fxtap_graph *graph) const { fxtap_graph_free(graph); }
};
using Dump = std::unique_ptr<fxtap_dump, CloseDump>;
using Graph = std::unique_ptr<fxtap_graph, FreeGraph>;

/* The call of one request: it succeeds by end(), otherwise it ends as failed, also on an exception. */
class Call {
public:
    Call(fxtap_capture *capture, std::uint64_t step) { check(fxtap_call_begin_step(capture, step, &call_)); }
    Call(const Call &) = delete;
    Call &operator=(const Call &) = delete;
    ~Call()
    {
        if (call_ != nullptr) {
            fxtap_call_fail(call_, "the request failed");
        }
    }

    std::uint64_t stamp() { return fxtap_call_stamp(call_); }

    void save(fxtap_node node, fxtap_io io, std::uint64_t stamp, const std::vector<float> &values, fxtap_ticket *ticket)
    {
        const std::int64_t shape = static_cast<std::int64_t>(values.size());
        fxtap_view view{};
        view.data = values.data();
        view.dtype = FXTAP_FLOAT32;
        view.ndim = 1;
        view.shape = &shape;
        check(fxtap_call_save(call_, node, io, "0", stamp, &view, ticket));
    }

    void end() { check(fxtap_call_end(std::exchange(call_, nullptr), nullptr)); }

private:
    fxtap_call *call_ = nullptr;
};

/* ---- the dump of the server: shared by its threads, and stopped at the first write error ---- */

class Recorder {
public:
    explicit Recorder(const std::string &path)
    {
        fxtap_dump_options options{};
        options.struct_size = sizeof options;
        options.path = path.c_str();
        options.world_size = 1;
        options.type = FXTAP_DUMP_NPY;
        options.command = "example_server";
        fxtap_dump *dump = nullptr;
        check(fxtap_dump_open(&options, &dump));
        dump_.reset(dump);
        add_graph();
    }

    /* A call for a request; empty if the dump was stopped. */
    std::unique_ptr<Call> begin(std::uint64_t request)
    {
        return is_on_ ? std::make_unique<Call>(capture_, request) : nullptr;
    }

    void stop(const Error &error)
    {
        if (is_on_.exchange(false)) {
            std::fprintf(stderr, "example_server: no more dumps: %s\n", error.what());
        }
    }

    fxtap_node scale = 0, tanh = 0;

private:
    void add_graph()
    {
        fxtap_graph *graph = nullptr;
        check(fxtap_graph_create(FXTAP_GRAPH_INFERENCE, &graph));
        Graph owner(graph);
        fxtap_value argument = add(graph, FXTAP_OP_PLACEHOLDER, "x", "x", nullptr, nullptr);
        argument = add(graph, FXTAP_OP_CALL_FUNCTION, "scale", "server.scale", &argument, &scale);
        argument = add(graph, FXTAP_OP_CALL_FUNCTION, "tanh", "aten.tanh.default", &argument, &tanh);
        add(graph, FXTAP_OP_OUTPUT, "output", "output", &argument, nullptr);
        check(fxtap_dump_add_graph(dump_.get(), graph, 1, nullptr, &capture_));
    }

    static fxtap_value add(fxtap_graph *graph, fxtap_node_op op, const char *name, const char *target,
                           const fxtap_value *argument, fxtap_node *node_out)
    {
        fxtap_node_desc desc{};
        desc.struct_size = sizeof desc;
        desc.op = op;
        desc.name = name;
        desc.target = target;
        desc.args = argument;
        desc.n_args = argument != nullptr ? 1 : 0;
        fxtap_node node = 0;
        fxtap_value result = 0;
        check(fxtap_graph_add_node(graph, &desc, &node));
        check(fxtap_graph_add_node_ref(graph, node, &result));
        if (node_out != nullptr) {
            *node_out = node;
        }
        return result;
    }

    Dump dump_;
    fxtap_capture *capture_ = nullptr; /* belongs to the dump */
    std::atomic<bool> is_on_{true};
};

/* ---- serving ---- */

constexpr std::size_t n_values = 1024;

/* The data of a request. It outlives the request's call, because queued tensors are read until the call ends. */
struct Work {
    explicit Work(std::uint64_t request) : x(n_values), scaled(n_values), result(n_values)
    {
        for (std::size_t i = 0; i < n_values; i++) {
            x[i] = static_cast<float>((request * 31 + i) % 100) / 50.0f - 1.0f;
            scaled[i] = 1.5f * x[i];
            result[i] = std::tanh(scaled[i]);
        }
    }

    void save(const Recorder &recorder, Call &call)
    {
        fxtap_ticket ticket = 0; /* of a value that is one operator's result and the next one's input */
        std::uint64_t stamp = call.stamp();
        call.save(recorder.scale, FXTAP_INPUT, stamp, x, nullptr);
        call.save(recorder.scale, FXTAP_OUTPUT, stamp, scaled, &ticket);
        stamp = call.stamp();
        call.save(recorder.tanh, FXTAP_INPUT, stamp, scaled, &ticket);
        call.save(recorder.tanh, FXTAP_OUTPUT, stamp, result, nullptr);
    }

    std::vector<float> x, scaled, result;
};

std::vector<float> serve(std::uint64_t request, Recorder &recorder)
{
    Work work(request);
    try {
        std::unique_ptr<Call> call = recorder.begin(request);
        if (call != nullptr) {
            work.save(recorder, *call);
            call->end();
        }
    } catch (const Error &error) { /* only the dump failed: the answer has been computed */
        recorder.stop(error);
    }
    return std::move(work.result);
}

void run(const std::string &path, std::uint64_t n_requests, unsigned n_threads)
{
    Recorder recorder(path);
    std::atomic<std::uint64_t> next{0}, n_served{0};
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < n_threads; i++) {
        threads.emplace_back([&] {
            for (std::uint64_t request = next++; request < n_requests; request = next++) {
                n_served += serve(request, recorder).size() == n_values;
            }
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    std::printf("served %llu requests\n", static_cast<unsigned long long>(n_served));
}

} // namespace

int main(int argc, char **argv)
{
    if (argc < 2 || argv[1][0] == '-') {
        std::fprintf(stderr, "usage: example_server DUMP [REQUESTS [THREADS]]\n");
        return 2;
    }
    std::signal(SIGXFSZ, SIG_IGN); /* a file size limit then is a write error, like a full disk */
    try {
        run(argv[1], argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 20,
            argc > 3 ? static_cast<unsigned>(std::atoi(argv[3])) : 4);
    } catch (const Error &error) {
        std::fprintf(stderr, "example_server: %s\n", error.what());
        return 2;
    }
    return 0;
}
