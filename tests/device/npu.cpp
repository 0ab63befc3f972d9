/*
 * A device "npu" for the tests, made of host memory. What torch sees as its addresses lies in a range without access, so
 * that code that takes them for host memory ends in a segmentation fault; the bytes are in a second mapping that only
 * the kernels below know. Both devices use the same range: equal addresses of two devices are different values.
 *
 * Kernels are the CPU's, on tensors over the second mapping. After npu_test::set_delay(us), us >= 0, they and the copies are
 * queued and run in order by a thread that waits `us` microseconds before each; what they have not written yet holds
 * 0xA5 bytes.
 */
#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <pthread.h>
#include <sys/mman.h>
#include <torch/library.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

namespace {

using at::IntArrayRef;
using at::Tensor;
using c10::Device;
using c10::IValue;
using torch::jit::Stack;

constexpr auto NPU = c10::DeviceType::PrivateUse1;
constexpr int N_DEVICES = 2;
constexpr size_t RANGE_BYTES = size_t(1) << 32;

bool is_npu(const Tensor &t) { return t.defined() && t.device().type() == NPU; }

/* ---- the queue ---- */

struct Queue {
    std::mutex lock; /* of all fields */
    std::condition_variable changed;
    std::deque<std::function<void()>> jobs;
    std::vector<std::function<void()>> finished; /* their tensors are freed by the caller, never by the worker */
    std::string error;
    bool is_running = false, has_worker = false;
} &queue = *new Queue;
int64_t delay_us = -1; /* negative: kernels run at once */
bool is_forked = false;

void run_jobs()
{
    std::unique_lock<std::mutex> hold(queue.lock);
    for (;;) {
        queue.changed.wait(hold, [] { return !queue.jobs.empty(); });
        auto job = std::move(queue.jobs.front());
        queue.jobs.pop_front();
        queue.is_running = true;
        hold.unlock();
        usleep((useconds_t)delay_us);
        std::string error;
        try {
            at::AutoDispatchBelowADInplaceOrView below;
            job();
        } catch (const c10::Error &e) {
            error = e.what_without_backtrace();
        } catch (const std::exception &e) {
            error = e.what();
        }
        hold.lock();
        queue.error = queue.error.empty() ? error : queue.error;
        queue.finished.push_back(std::move(job));
        queue.is_running = false;
        queue.changed.notify_all();
    }
}

void enqueue(std::function<void()> job)
{
    TORCH_CHECK(!is_forked, "npu: cannot be used in a forked process");
    if (delay_us < 0) {
        at::AutoDispatchBelowADInplaceOrView below;
        job();
        return;
    }
    std::vector<std::function<void()>> finished;
    std::lock_guard<std::mutex> hold(queue.lock);
    if (!queue.has_worker) {
        queue.has_worker = true;
        std::thread(run_jobs).detach();
    }
    queue.jobs.push_back(std::move(job));
    finished.swap(queue.finished);
    queue.changed.notify_all();
}

void synchronise()
{
    if (is_forked) {
        return;
    }
    std::vector<std::function<void()>> finished;
    std::string error;
    {
        std::unique_lock<std::mutex> hold(queue.lock);
        queue.changed.wait(hold, [] { return queue.jobs.empty() && !queue.is_running; });
        finished.swap(queue.finished);
        error.swap(queue.error);
    }
    TORCH_CHECK(error.empty(), "npu: asynchronous error: ", error);
}

/* ---- memory ---- */

struct Memory {
    std::mutex lock; /* of all fields below */
    char *range, *bytes[N_DEVICES];
    size_t n_used[N_DEVICES] = {};
    std::map<size_t, std::vector<size_t>> unused[N_DEVICES]; /* offsets by size */
    std::map<const char *, size_t> pinned;

    static char *map(int protection)
    {
        void *p = mmap(nullptr, RANGE_BYTES, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        TORCH_CHECK(p != MAP_FAILED, "npu: mmap failed");
        return (char *)p;
    }
    Memory() : range(map(PROT_NONE))
    {
        for (char *&b : bytes) {
            b = map(PROT_READ | PROT_WRITE);
        }
    }
} &memory = *new Memory;
thread_local c10::DeviceIndex current = 0;

char *bytes_of(const void *address, int device)
{
    return address == nullptr ? nullptr : memory.bytes[device] + ((const char *)address - memory.range);
}

struct Block {
    int device;
    size_t offset, size;
};

void free_block(void *context)
{
    std::unique_ptr<Block> block((Block *)context);
    std::lock_guard<std::mutex> hold(memory.lock);
    memory.unused[block->device][block->size].push_back(block->offset);
}

struct DeviceAllocator final : at::Allocator {
    at::DataPtr allocate(size_t n) override
    {
        Device device(NPU, current);
        if (n == 0) {
            return {nullptr, device};
        }
        size_t size = 512;
        while (size < n) {
            size *= 2;
        }
        std::lock_guard<std::mutex> hold(memory.lock);
        auto &unused = memory.unused[current][size];
        size_t offset = memory.n_used[current];
        if (!unused.empty()) {
            offset = unused.back();
            unused.pop_back();
        } else {
            TORCH_CHECK_WITH(OutOfMemoryError, size <= RANGE_BYTES - offset, "npu: out of memory");
            memory.n_used[current] += size;
        }
        memset(memory.bytes[current] + offset, 0xA5, n);
        char *address = memory.range + offset;
        return {address, new Block{current, offset, size}, &free_block, device};
    }
    at::DeleterFnPtr raw_deleter() const override { return nullptr; }
    void copy_data(void *to, const void *from, size_t n) const override
    {
        synchronise();
        memcpy(bytes_of(to, current), bytes_of(from, current), n);
    }
} allocator;
REGISTER_ALLOCATOR(NPU, &allocator)

/* Only copies to pinned memory can be non-blocking. */
struct PinnedAllocator final : at::Allocator {
    at::DataPtr allocate(size_t n) override
    {
        char *p = (char *)aligned_alloc(64, n / 64 * 64 + 64);
        memset(p, 0xA5, n);
        std::lock_guard<std::mutex> hold(memory.lock);
        memory.pinned[p] = n + 1;
        return {p, p, &unpin, Device(c10::kCPU)};
    }
    static void unpin(void *p)
    {
        {
            std::lock_guard<std::mutex> hold(memory.lock);
            memory.pinned.erase((char *)p);
        }
        free(p);
    }
    at::DeleterFnPtr raw_deleter() const override { return &unpin; }
    void copy_data(void *to, const void *from, size_t n) const override { default_copy_data(to, from, n); }
} pinned_allocator;

/* ---- what torch asks of a device ---- */

struct Guard final : c10::impl::DeviceGuardImplInterface {
    c10::DeviceType type() const override { return NPU; }
    Device exchangeDevice(Device d) const override
    {
        Device old = getDevice();
        setDevice(d);
        return old;
    }
    Device getDevice() const override { return Device(NPU, current); }
    void setDevice(Device d) const override
    {
        TORCH_CHECK(d.index() < N_DEVICES, "npu: no device ", int(d.index()));
        uncheckedSetDevice(d);
    }
    void uncheckedSetDevice(Device d) const noexcept override { current = d.has_index() ? d.index() : current; }
    c10::Stream getStream(Device d) const override { return c10::Stream(c10::Stream::DEFAULT, d); }
    c10::Stream exchangeStream(c10::Stream s) const override { return s; }
    c10::DeviceIndex deviceCount() const noexcept override { return N_DEVICES; }
    void synchronizeDevice(c10::DeviceIndex) const override { synchronise(); }
    void synchronizeStream(const c10::Stream &) const override { synchronise(); }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

struct Hooks final : at::PrivateUse1HooksInterface {
    bool isBuilt() const override { return true; }
    bool isAvailable() const override { return true; }
    bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
    c10::DeviceIndex deviceCount() const override { return N_DEVICES; }
    c10::DeviceIndex getCurrentDevice() const override { return current; }
    void setCurrentDevice(c10::DeviceIndex d) const override { current = d; }
    c10::DeviceIndex exchangeDevice(c10::DeviceIndex d) const override { return std::exchange(current, d); }
    c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex d) const override { return std::exchange(current, d); }
    const at::Generator &getDefaultGenerator(c10::DeviceIndex) const override
    {
        return at::globalContext().defaultGenerator(c10::kCPU);
    }
    Device getDeviceFromPtr(void *) const override { return Device(NPU, current); }
    bool isPinnedPtr(const void *p) const override
    {
        std::lock_guard<std::mutex> hold(memory.lock);
        auto next = memory.pinned.upper_bound((const char *)p);
        return next != memory.pinned.begin() && (--next, (const char *)p < next->first + next->second);
    }
    at::Allocator *getPinnedMemoryAllocator() const override { return &pinned_allocator; }
} hooks;

/* ---- kernels by the CPU's ---- */

Tensor new_like(const Tensor &t, Device device)
{
    return at::empty_strided(t.sizes(), t.strides(), t.options().device(device).pinned_memory(false));
}

/* A CPU tensor over the bytes of a device tensor, whose storage it keeps alive. */
Tensor open(const Tensor &t)
{
    c10::Storage storage = t.storage();
    Tensor view;
    if (t.numel() == 0 || storage.data() == nullptr) {
        view = new_like(t, c10::kCPU);
    } else {
        char *data = bytes_of(storage.data(), t.device().index()) + t.storage_offset() * (int64_t)t.itemsize();
        view = at::from_blob(data, t.sizes(), t.strides(), [storage](void *) {}, t.options().device(c10::kCPU));
    }
    view._set_conj(t.is_conj());
    view._set_neg(t.is_neg());
    return view;
}

Tensor to_npu(const Tensor &t, Device device)
{
    Tensor out = new_like(t, device);
    open(out).copy_(t);
    return out;
}

template <class F> IValue map_tensors(const IValue &value, F f)
{
    if (value.isTensor()) {
        return value.toTensor().defined() ? IValue(f(value.toTensor())) : value;
    }
    if (value.isTensorList()) {
        c10::List<Tensor> out;
        for (const Tensor &t : value.toTensorVector()) {
            out.push_back(f(t));
        }
        return out;
    }
    if (value.isOptionalTensorList()) {
        c10::List<std::optional<Tensor>> out;
        for (const auto &t : value.toOptionalTensorVector()) {
            out.push_back(t.has_value() && t->defined() ? std::optional<Tensor>(f(*t)) : t);
        }
        return out;
    }
    return value;
}

std::vector<Tensor> tensors_of(const Stack &values)
{
    std::vector<Tensor> out;
    for (const IValue &value : values) {
        if (value.isTensor()) {
            out.push_back(value.toTensor());
        }
        map_tensors(value.isTensor() ? IValue() : value, [&](const Tensor &t) { return out.emplace_back(t); });
    }
    return out;
}

/* An operator's arguments with the tensors of the device replaced, each once. */
struct Replaced {
    std::vector<std::pair<Tensor, Tensor>> pairs;
    Stack stack;

    template <class F> Replaced(at::ArrayRef<IValue> arguments, c10::DeviceType type, F replacement)
    {
        for (const IValue &value : arguments) {
            stack.push_back(value.isDevice() && value.toDevice().type() == NPU
                                ? IValue(Device(type))
                                : map_tensors(value, [&](const Tensor &t) { return replace(t, replacement); }));
        }
    }
    template <class F> Tensor replace(const Tensor &t, F replacement)
    {
        for (const auto &[old, fresh] : pairs) {
            if (old.is_same(t)) {
                return fresh;
            }
        }
        if (is_npu(t)) {
            pairs.emplace_back(t, replacement(t));
            return pairs.back().second;
        }
        return t;
    }
};

/* What a CPU kernel returned, on the device: an argument, a view of one, or a new tensor. */
Tensor returned(const Tensor &result, const Replaced &cpu, Device device)
{
    for (const auto &[npu, host] : cpu.pairs) {
        if (host.is_same(result)) {
            return npu;
        }
    }
    for (const auto &[npu, host] : cpu.pairs) {
        if (result.numel() > 0 && host.numel() > 0 && result.storage().data() == host.storage().data()) {
            int64_t offset = npu.storage_offset() + result.storage_offset() - host.storage_offset();
            return at::as_strided(npu, result.sizes(), result.strides(), offset);
        }
    }
    return to_npu(result, device);
}

void run_now(const c10::OperatorHandle &op, Stack *stack, at::ArrayRef<IValue> arguments, Device device)
{
    synchronise();
    Replaced cpu(arguments, c10::kCPU, open);
    const auto &declared = op.schema().arguments();
    for (size_t i = 0; i < declared.size(); i++) { /* what may be resized cannot be a view of foreign memory */
        if (declared[i].is_out() && cpu.stack[i].isTensor()) {
            for (auto &[npu, host] : cpu.pairs) {
                if (host.is_same(cpu.stack[i].toTensor())) {
                    cpu.stack[i] = host = host.clone();
                }
            }
        }
    }
    at::AutoDispatchBelowADInplaceOrView below;
    op.callBoxed(&cpu.stack);
    for (const auto &[npu, host] : cpu.pairs) {
        if (npu.numel() + host.numel() > 0 && host.storage().data() != open(npu).storage().data()) {
            TORCH_CHECK(npu.sizes() == host.sizes(), "npu: ", op.operator_name(), " resizes its argument");
            open(npu).copy_(host);
        }
    }
    torch::jit::drop(*stack, arguments.size());
    for (const IValue &value : cpu.stack) {
        stack->push_back(map_tensors(value, [&](const Tensor &t) { return returned(t, cpu, device); }));
    }
}

/* The results of an operator as its meta kernel describes them: arguments or new tensors; none if it cannot tell. */
std::optional<Stack> predict(const c10::OperatorHandle &op, at::ArrayRef<IValue> arguments, Device device)
{
    Replaced meta(arguments, c10::kMeta, [](const Tensor &t) { return new_like(t, c10::kMeta); });
    bool is_known = !op.hasTag(at::Tag::nondeterministic_seeded);
    for (const Tensor &t : tensors_of(meta.stack)) {
        is_known = is_known && (!t.defined() || t.is_meta() || t.dim() == 0);
    }
    try {
        at::AutoDispatchBelowADInplaceOrView below;
        if (is_known) {
            op.callBoxed(&meta.stack);
        }
    } catch (const std::exception &) {
        return std::nullopt;
    }
    for (const auto &[npu, described] : meta.pairs) {
        is_known = is_known && npu.sizes() == described.sizes();
    }
    Stack results;
    for (const IValue &value : meta.stack) {
        is_known = is_known && (value.isTensor() || value.isTensorList());
        results.push_back(map_tensors(value, [&](const Tensor &t) {
            for (const auto &[npu, described] : meta.pairs) {
                if (described.is_same(t)) {
                    return npu;
                }
                is_known = is_known && !described.is_alias_of(t);
            }
            return is_known ? new_like(t, device) : t;
        }));
    }
    return is_known ? std::optional<Stack>(results) : std::nullopt;
}

bool run_later(const c10::OperatorHandle &op, Stack *stack, at::ArrayRef<IValue> arguments, Device device)
{
    std::optional<Stack> results = predict(op, arguments, device);
    if (!results) {
        return false;
    }
    Replaced cpu(arguments, c10::kCPU, open);
    std::vector<Tensor> outputs = tensors_of(*results);
    for (Tensor &out : outputs) {
        bool is_argument = !out.defined();
        for (const auto &pair : cpu.pairs) {
            is_argument = is_argument || pair.first.is_same(out);
        }
        out = is_argument ? Tensor() : open(out);
    }
    enqueue([op, stack = cpu.stack, outputs]() mutable {
        op.callBoxed(&stack);
        std::vector<Tensor> computed = tensors_of(stack);
        for (size_t i = 0; i < outputs.size(); i++) {
            if (outputs[i].defined() && computed[i].defined()) {
                outputs[i].copy_(computed[i]);
            }
        }
    });
    torch::jit::drop(*stack, arguments.size());
    stack->insert(stack->end(), results->begin(), results->end());
    return true;
}

void fallback(const c10::OperatorHandle &op, Stack *stack)
{
    auto arguments = torch::jit::last(*stack, op.schema().arguments().size()).vec();
    Device device(NPU, current);
    for (const IValue &value : arguments) {
        device = value.isDevice() && value.toDevice().has_index() ? value.toDevice() : device;
    }
    for (const Tensor &t : tensors_of(arguments)) {
        device = is_npu(t) ? t.device() : device;
    }
    c10::DeviceGuard guard(device);
    if (delay_us < 0 || !run_later(op, stack, arguments, device)) {
        run_now(op, stack, arguments, device);
    }
}

/* ---- copies ---- */

std::vector<int64_t> host_copies; /* address, bytes, device, ...: of each copy to the host */
int64_t copy_to_fail = -1;        /* the nth copy to the host from now fails: there is no memory */
bool are_copies_wrong = false;    /* copies within the device write one more than they read */

void copy_to_host(const Tensor &source, const Tensor &to, bool is_late)
{
    int64_t address = (int64_t)source.storage().data() + source.storage_offset() * (int64_t)source.itemsize();
    host_copies.insert(host_copies.end(), {address, (int64_t)to.nbytes(), source.device().index()});
    TORCH_CHECK_WITH(OutOfMemoryError, copy_to_fail < 0 || copy_to_fail-- > 0, "npu: out of memory\nsecond line");
    enqueue([from = open(source), to = to.detach()] { to.copy_(from); });
    if (!is_late) {
        synchronise();
    }
}

Tensor copy_from(const Tensor &from, const Tensor &to, bool is_non_blocking)
{
    Tensor source = from.expand(to.sizes());
    if (to.numel() == 0) {
        return to;
    }
    if (!is_npu(to)) {
        copy_to_host(source, to, is_non_blocking && to.is_pinned());
    } else if (is_npu(from)) {
        enqueue([from = open(source), to = open(to), is_wrong = are_copies_wrong] {
            to.copy_(from);
            if (is_wrong) {
                to.add_(1);
            }
        });
    } else {
        enqueue([from = source.clone(), to = open(to)] { to.copy_(from); });
    }
    return to;
}

at::Scalar read_scalar(const Tensor &t)
{
    synchronise();
    return open(t).item();
}

/* ---- kernels that the fallback cannot be ---- */

Tensor make_empty(IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                  std::optional<Device> device, std::optional<bool>, std::optional<at::MemoryFormat> format)
{
    c10::DeviceGuard guard(device.value_or(Device(NPU, current)));
    c10::DispatchKeySet keys(c10::DispatchKey::PrivateUse1);
    return at::detail::empty_generic(size, &allocator, keys, c10::dtype_or_default(dtype), format);
}

Tensor make_strided(IntArrayRef size, IntArrayRef stride, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                    std::optional<Device> device, std::optional<bool>)
{
    c10::DeviceGuard guard(device.value_or(Device(NPU, current)));
    c10::DispatchKeySet keys(c10::DispatchKey::PrivateUse1);
    return at::detail::empty_strided_generic(size, stride, &allocator, keys, c10::dtype_or_default(dtype));
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>()); }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
    m.impl("empty.memory_format", &make_empty);
    m.impl("empty_strided", &make_strided);
    m.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
    m.impl("view", TORCH_FN(at::native::view));
    m.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
    m.impl("unfold", TORCH_FN(at::native::unfold));
    m.impl("view_as_real", TORCH_FN(at::native::view_as_real));
    m.impl("view_as_complex", TORCH_FN(at::native::view_as_complex));
    m.impl("_copy_from", &copy_from);
    m.impl("_local_scalar_dense", &read_scalar);
}

/* torch's own fallback for these views clones the source by a copy, which would call itself. */
TORCH_LIBRARY_IMPL(aten, Conjugate, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, Negative, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }

/* ---- what the tests call ---- */

TORCH_LIBRARY(npu_test, m)
{
    m.def("set_delay(int us) -> ()", [](int64_t us) {
        synchronise();
        delay_us = us;
    });
    m.def("fail_copy(int n) -> ()", [](int64_t n) { copy_to_fail = n; });
    m.def("make_copies_wrong(bool yes) -> ()", [](bool yes) { are_copies_wrong = yes; });
    m.def("take_host_copies() -> int[]", [] { return std::exchange(host_copies, {}); });
    m.def("align_devices() -> ()", [] { /* blocks of a new size have equal addresses on both devices from now on */
        memory.n_used[0] = memory.n_used[1] = std::max(memory.n_used[0], memory.n_used[1]);
    });
    m.def("synchronize() -> ()", &synchronise);
    m.def("current_device() -> int", [] { return (int64_t)current; });
    m.def("set_device(int index) -> ()", [](int64_t index) { current = (c10::DeviceIndex)index; });
    m.def("is_forked() -> bool", [] { return is_forked; });
}

const bool is_registered = [] {
    at::RegisterPrivateUse1HooksInterface(&hooks);
    pthread_atfork(nullptr, nullptr, [] { is_forked = true; });
    return true;
}();

} // namespace
