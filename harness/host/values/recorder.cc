#include "harness/host/values/recorder.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>

namespace attn_diag::host {

using value_callouts::Site;

namespace {

constexpr std::uint32_t kLabelMask = (1u << kPartShift) - 1;
constexpr std::uint32_t kAnybody = ~0u;
constexpr std::uint64_t kMostNodes = kPacked - 1, kMostPacked = kPacked / 2;

// The site of what host code copies.
Site g_copied = {0, value_callouts::Op::kInput, 0, 0, "", "", "", "", "", "", "", 0};

struct Modules {
  std::mutex mutex;
  std::map<Site* const*, std::size_t> counts;
};
Modules& modules() {
  static Modules all;
  return all;
}

template <class Each>
void for_each_module(const Each& each) {
  const std::lock_guard lock(modules().mutex);
  for (const auto& [sites, count] : modules().counts) each(sites, count);
}

std::uintptr_t address_of(const void* at) { return reinterpret_cast<std::uintptr_t>(at); }

}  // namespace

void add_value_sites(Site* const* sites, std::size_t count) {
  const std::lock_guard lock(modules().mutex);
  modules().counts[sites] = count;
}

void remove_value_sites(Site* const* sites) {
  const std::lock_guard lock(modules().mutex);
  modules().counts.erase(sites);
}

ValueRecorder::ValueRecorder(const ValueOptions& options) : x_options(options) {
  x_options.max_nodes = std::min(x_options.max_nodes, kMostNodes);
  x_graph.sites.emplace_back();
  x_graph.nodes.emplace_back();
  x_width.push_back(0);
  x_read.push_back(false);
  for (const std::uint32_t block : x_options.blocks) {
    if (x_watched.size() <= block) x_watched.resize(std::size_t{block} + 1);
    x_watched[block] = true;
  }
  if (!x_options.all_blocks)
    for (const ValueBuffer& buffer : x_options.inputs)
      x_graph.loaded_elsewhere.emplace_back(buffer.bytes / buffer.element_bytes);
  for (const ValueBuffer& buffer : x_options.outputs)
    x_graph.outputs.emplace_back(buffer.bytes / buffer.element_bytes);
}

void ValueRecorder::begin_launch() { x_launch_begin = x_blocks; }

bool ValueRecorder::begin_block(std::uint64_t number) {
  const std::uint32_t block = block_number(number);
  x_blocks = std::max(x_blocks, block + 1);
  if (x_graph.reads_of.size() <= block) x_graph.reads_of.resize(block + 1);
  return is_watched(block);
}

ValueGraph ValueRecorder::take() {
  // The others of libraries some of whose sites ran; of all libraries where none did.
  const std::size_t ran = x_graph.sites.size();
  for_each_module([&](Site* const* sites, std::size_t count) {
    const bool none_ran =
        std::none_of(sites, sites + count, [](const Site* site) { return site->number != 0; });
    if (none_ran && ran > 1) return;
    for (std::size_t i = 0; i < count; ++i) {
      const bool came = sites[i]->number != 0;
      if (!came && sites[i]->of_host != 0) continue;
      x_graph.sites[number_of(*sites[i])].stored = came || x_constants_at.count(sites[i]) != 0;
    }
  });
  for (std::size_t i = ran; i < x_graph.sites.size(); ++i) x_graph.sites[i].ran = false;
  // Another recorder numbers them anew.
  for (Site* site : x_numbered) site->number = 0;
  x_numbered.clear();
  if (!x_options.all_blocks) {
    x_graph.watched = x_watched;
    x_graph.watched.resize(std::max<std::size_t>(x_blocks, 1));
  }
  return std::move(x_graph);
}

int ValueRecorder::find(const std::vector<ValueBuffer>& buffers, const void* at) {
  for (std::size_t i = 0; i < buffers.size(); ++i)
    if (address_of(at) - address_of(buffers[i].memory) < buffers[i].bytes)
      return static_cast<int>(i);
  return -1;
}

bool ValueRecorder::is_output(const void* at) const { return find(x_options.outputs, at) >= 0; }

std::uint32_t ValueRecorder::number_of(Site& site) {
  if (site.number != 0) return site.number;
  x_graph.instrumented = true;
  ValueSite made;
  made.op = site.op;
  made.line = static_cast<int>(site.line);
  made.column = static_cast<int>(site.column);
  made.file = site.file;
  made.function = site.function;
  made.variable = site.variable;
  made.conditions = site.conditions;
  made.uses = site.uses;
  made.callers = site.callers;
  made.home = site.home;
  x_graph.sites.push_back(std::move(made));
  site.number = static_cast<std::uint32_t>(x_graph.sites.size() - 1);
  x_numbered.push_back(&site);
  return site.number;
}

Label ValueRecorder::add_node(std::uint32_t site, std::uint32_t where,
                              std::array<std::uint32_t, 3> operand, float value) {
  if (x_graph.nodes.size() >= x_options.max_nodes) {
    x_graph.full = true;
    return 0;
  }
  x_graph.nodes.push_back({site, where, operand, value});
  x_width.push_back(4);
  x_read.push_back(false);
  return static_cast<Label>(x_graph.nodes.size() - 1);
}

Label ValueRecorder::add(Site& site, std::uint32_t where, std::array<std::uint32_t, 3> operand,
                         float value) {
  return add_node(number_of(site), where, operand, value);
}

Label ValueRecorder::constant(float value) {
  Label& label = x_constants[std::bit_cast<std::uint32_t>(value)];
  if (label == 0) label = add_node(0, 0, {}, value);
  return label;
}

std::uint32_t ValueRecorder::node_or_constant(Label label, float number) {
  if ((label & kPacked) != 0) return 0;
  return label != 0 ? label : constant(number);
}

// Bytes of labels.

ValueRecorder::Page* ValueRecorder::page(std::uintptr_t at, bool make) {
  const std::uintptr_t number = at >> 12;
  auto& recent = x_recent[number % x_recent.size()];
  if (recent.first == number && recent.second != nullptr) return recent.second;
  const auto found = x_pages.find(number);
  if (found == x_pages.end() && !make) return nullptr;
  Page* const there = found != x_pages.end() ? found->second.get()
                                             : (x_pages[number] = std::make_unique<Page>()).get();
  recent = {number, there};
  return there;
}

Packed ValueRecorder::bytes_at(const void* memory, unsigned bytes) {
  Packed out{};
  std::uintptr_t at = address_of(memory);
  for (unsigned i = 0; i < bytes;) {
    const unsigned offset = (at + i) & 4095, here = std::min(bytes - i, 4096 - offset);
    if (const Page* p = page(at + i, false))
      std::copy_n(p->bytes.begin() + offset, here, out.begin() + i);
    i += here;
  }
  return out;
}

void ValueRecorder::write(std::uintptr_t at, const std::uint32_t* bytes, std::size_t count) {
  for (std::size_t i = 0; i < count;) {
    const std::size_t offset = (at + i) & 4095, here = std::min(count - i, 4096 - offset);
    const bool any = bytes != nullptr && std::any_of(bytes + i, bytes + i + here,
                                                     [](std::uint32_t b) { return b != 0; });
    if (Page* p = page(at + i, any)) {
      if (bytes != nullptr)
        std::copy_n(bytes + i, here, p->bytes.begin() + static_cast<std::ptrdiff_t>(offset));
      else
        std::fill_n(p->bytes.begin() + static_cast<std::ptrdiff_t>(offset), here, 0u);
    }
    i += here;
  }
}

void ValueRecorder::forget(const void* memory, std::size_t bytes) {
  write(address_of(memory), nullptr, bytes);
}

Packed ValueRecorder::unpack(Label label, unsigned bytes) const {
  if ((label & kPacked) != 0) return packed(label);
  Packed out{};
  if (label == 0) return out;
  const unsigned count = std::min<unsigned>({bytes, x_width[label], 8});
  for (unsigned i = 0; i < count; ++i) out[i] = label | i << kPartShift;
  return out;
}

// One label, where the bytes are those of one number.
Label ValueRecorder::pack(const Packed& bytes, unsigned count) {
  count = std::min<unsigned>(count, 16);
  const Label first = bytes[0] & kLabelMask;
  bool one = first != 0 && x_width[first] == count;
  for (unsigned i = 0; one && i < count; ++i) one = bytes[i] == (first | i << kPartShift);
  if (one) return first;
  if (std::all_of(bytes.begin(), bytes.begin() + count, [](std::uint32_t b) { return b == 0; }))
    return 0;
  // A step of a sum in pairs of 16 bits makes more of these than nodes.
  const bool small = count <= std::tuple_size_v<SmallPacked>;
  const std::uint64_t most = std::min<std::uint64_t>(
      small ? x_options.max_nodes * 3 / 2 : x_options.max_nodes / 4, kMostPacked);
  if ((small ? x_small_packed.size() : x_packed.size()) >= most) {
    x_graph.full = true;
    return 0;
  }
  const auto keep = [&](auto& list) {
    std::copy_n(bytes.begin(), count, list.emplace_back().begin());
    return list.size() - 1;
  };
  const std::size_t number = small ? keep(x_small_packed) : keep(x_packed);
  return static_cast<Label>(2 * number + (small ? 1 : 0)) | kPacked;
}

Packed ValueRecorder::packed(Label label) const {
  const std::size_t number = label & ~kPacked;
  if (number % 2 == 0) return x_packed[number / 2];
  Packed out{};
  std::copy_n(x_small_packed[number / 2].begin(), std::tuple_size_v<SmallPacked>, out.begin());
  return out;
}

Label ValueRecorder::label_at(const void* at, unsigned bytes) {
  return pack(bytes_at(at, bytes), bytes);
}

void ValueRecorder::set_label(void* at, unsigned bytes, Label label) {
  if (label != 0 && (label & kPacked) == 0) x_width[label] = static_cast<unsigned char>(bytes);
  const Packed parts = unpack(label, bytes);
  write(address_of(at), parts.data(), bytes);
}

void ValueRecorder::copy(void* to, const void* from, std::size_t bytes, CopiedAt at_line) {
  std::vector<std::uint32_t> labels(bytes);
  for (std::size_t i = 0; i < bytes; i += 16) {
    const auto here = static_cast<unsigned>(std::min<std::size_t>(16, bytes - i));
    const std::byte* const at = static_cast<const std::byte*>(from) + i;
    Packed parts{};
    // What comes straight from an input gets its nodes as it is copied.
    if (const int buffer = find(x_options.inputs, at); buffer >= 0) {
      const ValueBuffer& input = x_options.inputs[static_cast<std::size_t>(buffer)];
      const auto offset = address_of(at) - address_of(input.memory);
      for (unsigned b = 0; b + input.element_bytes <= here; b += input.element_bytes) {
        float value = 0;
        if (input.element_bytes == 4) std::memcpy(&value, at + b, 4);
        const Label label =
            add(at_line.site == nullptr ? g_copied : *at_line.site, at_line.where,
                {static_cast<std::uint32_t>(buffer) + 1,
                 static_cast<std::uint32_t>((offset + b) / input.element_bytes), ValueNode::kInput},
                value);
        if (label == 0) break;
        x_width[label] = static_cast<unsigned char>(input.element_bytes);
        for (unsigned p = 0; p < input.element_bytes; ++p) parts[b + p] = label | p << kPartShift;
      }
    } else {
      parts = bytes_at(at, here);
      for (const std::uint32_t part : parts) x_read[part & kLabelMask] = true;
      // Code of the host hands on who stored it.
      if (at_line.site != nullptr)
        parts = is_of_unwatched(at) ? unwatched(*at_line.site, at_line.where, here)
                                    : copied_here(*at_line.site, at_line.where, parts, here);
    }
    if (at_line.store != nullptr) parts = copied_here(*at_line.store, at_line.where, parts, here);
    std::copy_n(parts.begin(), here, labels.begin() + static_cast<std::ptrdiff_t>(i));
  }
  write(address_of(to), labels.data(), bytes);
  const int buffer = find(x_options.outputs, to);
  const std::size_t step =
      buffer < 0 ? 4 : x_options.outputs[static_cast<std::size_t>(buffer)].element_bytes;
  for (std::size_t i = 0; i + step <= bytes; i += step) {
    const std::byte* const there = static_cast<const std::byte*>(to) + i;
    const auto note = [&](Site& site, std::uint32_t where) {
      note_output(site, where, there, static_cast<unsigned>(step),
                  label_at(there, static_cast<unsigned>(step)));
    };
    if (at_line.site != nullptr) {
      if (buffer < 0) break;
      note(at_line.store != nullptr ? *at_line.store : *at_line.site, at_line.where);
      continue;
    }
    // The host copies what a block stored, perhaps by way of memory of its own.
    const auto writer = x_writers.find(address_of(static_cast<const std::byte*>(from) + i) / 4);
    if (writer == x_writers.end()) continue;
    const Writer by = writer->second;
    if (buffer >= 0)
      note(*by.site, by.block << 10);
    else
      x_writers[address_of(there) / 4] = by;
  }
}

// Loads and stores.

float ValueRecorder::number_of_bits(Label label, unsigned bytes, std::uint64_t bits) const {
  if (bytes == 4) return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  if (bytes == 8) return static_cast<float>(std::bit_cast<double>(bits));
  return label != 0 && (label & kPacked) == 0 ? x_graph.nodes[label].value : 0;
}

Label ValueRecorder::load(Site& site, std::uint32_t where, const void* at, unsigned bytes,
                          std::uint64_t bits, bool local) {
  if (bytes > 16) return 0;
  if (const int buffer = find(x_options.inputs, at); buffer >= 0) {
    const ValueBuffer& input = x_options.inputs[static_cast<std::size_t>(buffer)];
    const auto offset = address_of(at) - address_of(input.memory);
    Packed parts{};
    for (unsigned b = 0; b + input.element_bytes <= bytes; b += input.element_bytes) {
      float value = 0;
      if (input.element_bytes == 4)
        std::memcpy(&value, static_cast<const std::byte*>(at) + b, sizeof value);
      const Label label =
          add(site, where,
              {static_cast<std::uint32_t>(buffer) + 1,
               static_cast<std::uint32_t>((offset + b) / input.element_bytes), ValueNode::kInput},
              value);
      if (label == 0) return 0;
      x_width[label] = static_cast<unsigned char>(input.element_bytes);
      for (unsigned p = 0; p < input.element_bytes; ++p) parts[b + p] = label | p << kPartShift;
    }
    return pack(parts, bytes);
  }
  const Label label = label_at(at, bytes);
  if (label == 0 && is_of_unwatched(at)) return pack(unwatched(site, where, bytes), bytes);
  // A number of nobody: worth knowing where it was read. Bits are one if they are what memory holds that nobody wrote.
  const bool unwritten = (bytes == 4 && bits == 0xFFFFFFFF) || (bytes == 2 && bits == 0xFFFF);
  if (label == 0 && (unwritten || (site.op == ValueOp::kLoadNumber && bytes == 4))) {
    const Label made = add(site, where, {},
                           unwritten ? std::bit_cast<float>(0x7FC00000u)
                                     : std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    if (made != 0) x_width[made] = static_cast<unsigned char>(bytes);
    return made;
  }
  if ((label & kPacked) != 0) {
    const Packed parts = packed(label);
    for (const std::uint32_t part : parts) x_read[part & kLabelMask] = true;
    // Registers, as of an array that is handed on, are moved by many lines that mean nothing.
    return pack(local ? loaded_here(site, where, parts) : copied_here(site, where, parts, bytes),
                bytes);
  }
  if (label == 0) return label;
  x_read[label] = true;
  const float value = number_of_bits(label, bytes, bits);
  // Stored to since by what does not tell.
  const float known = x_graph.nodes[label].value;
  if (bytes == 4 && !(std::isnan(value) && std::isnan(known)) &&
      std::bit_cast<std::uint32_t>(value) != std::bit_cast<std::uint32_t>(known)) {
    ++x_graph.unseen;
    return 0;
  }
  if (is_copied(label)) return pack(loaded_here(site, where, unpack(label, bytes)), bytes);
  const Label made = add(site, where, {label, 0, 0}, value);
  if (made != 0) x_width[made] = static_cast<unsigned char>(bytes);
  return made;
}

void ValueRecorder::store(Site& site, std::uint32_t where, const void* at, unsigned bytes,
                          Label label, std::uint64_t bits, bool local) {
  if (label == 0) x_constants_at.insert(&site);
  if (bytes > 16) return forget(at, bytes);
  Label kept = label;
  if (label != 0 && (label & kPacked) == 0) {
    kept = add(site, where, {label, 0, 0}, number_of_bits(label, bytes, bits));
    if (kept != 0) x_width[kept] = static_cast<unsigned char>(bytes);
  }
  note_replaced(site, at, bytes, kept, local ? where : kAnybody);
  Packed parts = unpack(kept, bytes);
  if ((label & kPacked) != 0 && !local) parts = copied_here(site, where, parts, bytes);
  write(address_of(at), parts.data(), bytes);
  if (is_output(at)) note_output(site, where, at, bytes, label_at(at, bytes));
}

bool ValueRecorder::is_copied(Label label) const {
  const ValueNode& node = x_graph.nodes[label];
  return node.is_input() && node.site == g_copied.number;
}

Packed ValueRecorder::loaded_here(Site& site, std::uint32_t where, Packed parts) {
  Label of = 0, made = 0;
  for (std::uint32_t& part : parts) {
    const Label label = part & kLabelMask;
    if (!is_copied(label)) continue;
    if (label != of) {
      const ValueNode copied = x_graph.nodes[label];
      of = label;
      made = add(site, where, copied.operand, copied.value);
      x_width[made] = x_width[label];
    }
    part = made == 0 ? 0 : made | (part & ~kLabelMask);
  }
  return parts;
}

Packed ValueRecorder::copied_here(Site& site, std::uint32_t where, Packed parts, unsigned bytes) {
  if (site.op == value_callouts::Op::kLoad) parts = loaded_here(site, where, parts);
  for (unsigned i = 0; i < bytes;) {
    const Label label = parts[i];
    const unsigned width = label == 0 || (label & ~kLabelMask) != 0 ? 0 : x_width[label];
    bool whole = width > 0 && i + width <= bytes && x_graph.nodes[label].site != site.number;
    for (unsigned p = 1; whole && p < width; ++p) whole = parts[i + p] == (label | p << kPartShift);
    if (!whole) {
      ++i;
      continue;
    }
    const Label made = add(site, where, {label, 0, 0}, x_graph.nodes[label].value);
    if (made == 0) break;
    x_width[made] = static_cast<unsigned char>(width);
    for (unsigned p = 0; p < width; ++p) parts[i + p] = made | p << kPartShift;
    i += width;
  }
  return parts;
}

bool ValueRecorder::is_of_unwatched(const void* at) const {
  if (x_options.all_blocks) return false;
  const auto writer = x_writers.find(address_of(at) / 4);
  return writer != x_writers.end() && !is_watched(writer->second.block);
}

Packed ValueRecorder::unwatched(Site& site, std::uint32_t where, unsigned bytes) {
  Packed parts{};
  for (unsigned b = 0; b < bytes; b += 4) {
    const unsigned width = std::min(bytes - b, 4u);
    const Label label = add(site, where, {}, 0);
    if (label == 0) break;
    x_graph.unwatched.push_back(label);
    x_width[label] = static_cast<unsigned char>(width);
    for (unsigned p = 0; p < width; ++p) parts[b + p] = label | p << kPartShift;
  }
  return parts;
}

Label ValueRecorder::load_on_host(const void* at, unsigned bytes) {
  const auto writer = x_writers.find(address_of(at) / 4);
  if (writer == x_writers.end() || find(x_options.inputs, at) >= 0 || bytes > 16) return 0;
  const std::uint32_t block = writer->second.block;
  Label label = 0;
  if (is_watched(block)) {
    label = label_at(at, bytes);
  } else {
    Label& known = x_only_of_block[block];
    if (known == 0) known = add_node(0, block << 10, {}, 0);
    label = known;
  }
  if (label != 0) x_on_host[label] = writer->second;
  return label;
}

void ValueRecorder::store_on_host(const void* at, unsigned bytes, Label label) {
  const auto by = x_on_host.find(label);
  forget(at, bytes);
  if (by == x_on_host.end() || bytes > 16) return forget_writers(at, bytes);
  for (std::uintptr_t word = address_of(at) / 4; word <= (address_of(at) + bytes - 1) / 4; ++word)
    x_writers[word] = by->second;
  const bool watched = is_watched(by->second.block);
  if (watched) set_label(const_cast<void*>(at), bytes, label);
  if (is_output(at))
    note_output(*by->second.site, by->second.block << 10, at, bytes, watched ? label : 0);
}

Label ValueRecorder::hand_on(Label made, Label of) {
  if (made != 0) x_on_host[made] = x_on_host.at(of);
  return made;
}

void ValueRecorder::forget_writers(const void* at, std::size_t bytes) {
  if (x_writers.empty() || bytes == 0) return;
  for (std::uintptr_t word = address_of(at) / 4; word <= (address_of(at) + bytes - 1) / 4; ++word)
    x_writers.erase(word);
}

void ValueRecorder::note_replaced(Site& site, const void* at, unsigned bytes, Label by,
                                  std::uint32_t of) {
  const Packed before = bytes_at(at, bytes);
  const Label old = before[0] & kLabelMask;
  if (old == 0 || x_read[old] || before[0] != old || x_width[old] != bytes ||
      x_graph.replaced.size() >= ValueGraph::kMostReplaced)
    return;
  // The stack of a thread that has ended is another's now.
  if (of != kAnybody && x_graph.nodes[old].where != of) return;
  x_graph.replaced.push_back({old, (by & kPacked) != 0 ? 0 : by, number_of(site)});
}

void ValueRecorder::note_output(Site& site, std::uint32_t where, const void* at, unsigned bytes,
                                Label label) {
  const std::uint32_t block = where >> 10;
  const int buffer = find(x_options.outputs, at);
  if (buffer < 0) return;
  const ValueBuffer& output = x_options.outputs[static_cast<std::size_t>(buffer)];
  const std::size_t first = (address_of(at) - address_of(output.memory)) / output.element_bytes;
  const Packed parts = unpack(label, bytes);
  auto& elements = x_graph.outputs[static_cast<std::size_t>(buffer)];
  for (unsigned b = 0; b + output.element_bytes <= std::max(bytes, output.element_bytes) &&
                       first + b / output.element_bytes < elements.size();
       b += output.element_bytes) {
    ValueOutput& element = elements[first + b / output.element_bytes];
    // An atomic addition is one of many.
    const bool by_other_thread = site.op == value_callouts::Op::kStore && site.line != 0 &&
                                 element.node != 0 && x_graph.nodes[element.node].where != where;
    x_graph.stored_twice += element.block != ~0u && (element.block != block || by_other_thread);
    element.block = block;
    element.site = number_of(site);
    element.node = b < 16 ? parts[b] & kLabelMask : 0;
  }
}

void ValueRecorder::note_global(Site& site, std::uint32_t block, const void* at, unsigned bytes,
                                bool is_store) {
  if (!is_store && !is_watched(block)) note_elsewhere(at, bytes);
  if (is_input(at)) return;
  if (is_store && !is_watched(block)) forget(at, bytes);
  for (std::uintptr_t word = address_of(at) / 4; word <= (address_of(at) + bytes - 1) / 4; ++word) {
    if (is_store) {
      x_writers[word] = {block, &site};
      continue;
    }
    const auto writer = x_writers.find(word);
    if (writer == x_writers.end() || writer->second.block == block) continue;
    auto& reads = x_graph.reads_of[block];
    if (std::find(reads.begin(), reads.end(), writer->second.block) == reads.end())
      reads.push_back(writer->second.block);
  }
}

void ValueRecorder::note_elsewhere(const void* at, unsigned bytes) {
  if (const int buffer = find(x_options.inputs, at); buffer >= 0) {
    const ValueBuffer& input = x_options.inputs[static_cast<std::size_t>(buffer)];
    std::vector<bool>& loaded = x_graph.loaded_elsewhere[static_cast<std::size_t>(buffer)];
    const std::uintptr_t first = address_of(at) - address_of(input.memory);
    for (std::size_t e = first / input.element_bytes;
         e < loaded.size() && e * input.element_bytes < first + bytes; ++e)
      loaded[e] = true;
    return;
  }
  // What code of the host copied.
  for (unsigned done = 0; done < bytes; done += 16) {
    const unsigned here = std::min(bytes - done, 16u);
    for (const std::uint32_t part : bytes_at(static_cast<const std::byte*>(at) + done, here))
      if (const Label label = part & kLabelMask; label != 0 && is_copied(label)) {
        const auto& operand = x_graph.nodes[label].operand;
        x_graph.loaded_elsewhere[operand[0] - 1][operand[1]] = true;
      }
  }
}

// Numbers.

Label ValueRecorder::compute(Site& site, std::uint32_t where, float result,
                             const std::array<Label, 3>& labels,
                             const std::array<float, 3>& numbers, unsigned count) {
  std::array<std::uint32_t, 3> operand{};
  for (unsigned i = 0; i < count; ++i) operand[i] = node_or_constant(labels[i], numbers[i]);
  return add(site, where, operand, result);
}

Label ValueRecorder::pick(Site& site, std::uint32_t where, Label chosen, float number,
                          Label other) {
  if ((other & kPacked) != 0) other = 0;
  if ((chosen & kPacked) != 0) return chosen;
  // Nothing was chosen between.
  if (chosen == other) return chosen;
  return add(site, where, {node_or_constant(chosen, number), other, 0}, number);
}

Label ValueRecorder::convert(Site& site, std::uint32_t where, Label label, float result,
                             unsigned bytes) {
  if (label == 0) return 0;
  // Bits of several numbers: taken as those of the first.
  if ((label & kPacked) != 0) {
    const Packed parts = packed(label);
    const auto first =
        std::find_if(parts.begin(), parts.end(), [](std::uint32_t b) { return b != 0; });
    if (first == parts.end()) return 0;
    label = *first & kLabelMask;
  }
  const Label made = add(site, where, {label, 0, 0}, result);
  if (made != 0) x_width[made] = static_cast<unsigned char>(bytes);
  return made;
}

Label ValueRecorder::from_integer(Site& site, std::uint32_t where, Label label, float number,
                                  unsigned bytes) {
  if (label == 0) return 0;
  if ((label & kPacked) != 0) label = packed(label)[0] & kLabelMask;
  return label == 0 || x_width[label] != 1 ? 0 : convert(site, where, label, number, bytes);
}

void ValueRecorder::note_coded(unsigned input, const void* codes, std::uint64_t count) {
  if (input >= x_options.inputs.size()) return;
  // What was there before has been freed.
  for (ValueBuffer& other : x_options.inputs)
    if (address_of(other.memory) < address_of(codes) + count &&
        address_of(codes) < address_of(other.memory) + other.bytes)
      other.bytes = 0;
  x_options.inputs[input] = {codes, count, 1};
}

void ValueRecorder::offer(std::uint32_t thread, Label label, std::uint64_t bits) {
  if (x_offered.size() <= thread) x_offered.resize(thread + 1);
  Offered& offered = x_offered[thread];
  offered.bits[offered.next % 16] = bits;
  offered.label[offered.next % 16] = label;
  ++offered.next;
}

Label ValueRecorder::receive(Site& site, std::uint32_t where, std::uint32_t source_thread,
                             std::uint64_t bits) {
  if (source_thread >= x_offered.size()) return 0;
  const Offered& offered = x_offered[source_thread];
  const unsigned kept = std::min(offered.next, 16u);
  // The other lane may have gone on to offer the same bits again: where lanes do all alike, it is what it offered when
  // this one did.
  const unsigned own = (where & 1023) < x_offered.size() ? x_offered[where & 1023].next : 0;
  const unsigned since = offered.next - own + 1;
  const bool alike = own != 0 && offered.next >= own && since <= kept &&
                     offered.bits[(offered.next - since) % 16] == bits;
  for (unsigned back = alike ? since : 1; back <= kept; ++back) {
    const unsigned i = (offered.next - back) % 16;
    if (offered.bits[i] != bits) continue;
    const Label label = offered.label[i];
    if (label == 0) return label;
    // Lanes hand on 8 bytes, whatever they are.
    if ((label & kPacked) != 0) return pack(copied_here(site, where, packed(label), 8), 8);
    const Label made = add(site, where, {label, 0, 0}, x_graph.nodes[label].value);
    if (made != 0) x_width[made] = x_width[label];
    return made;
  }
  return 0;
}

void ValueRecorder::atomic_add(Site& site, std::uint32_t where, void* at, Label label,
                               float number) {
  float before;
  std::memcpy(&before, at, sizeof before);
  Label there = label_at(at, 4);
  if (there == 0 && is_of_unwatched(at)) there = pack(unwatched(site, where, 4), 4);
  if ((there & kPacked) == 0) x_read[there] = true;
  const Label made =
      add(site, where, {node_or_constant(there, before), node_or_constant(label, number), 0},
          before + number);
  set_label(at, 4, made);
  if (is_output(at)) note_output(site, where, at, 4, made);
}

Label ValueRecorder::product(std::uint32_t where, Label addend,
                             const std::vector<std::uint32_t>& pairs, float value) {
  if (x_at == nullptr) return 0;
  const auto begin = static_cast<std::uint32_t>(x_graph.products.size());
  for (std::size_t i = 0; i < pairs.size(); i += 2)
    x_graph.products.push_back({pairs[i], pairs[i + 1]});
  return add(*x_at, where, {addend, begin, static_cast<std::uint32_t>(pairs.size() / 2)}, value);
}

// Integers that hold bits of numbers.

Label ValueRecorder::resize(Label label, unsigned bytes, unsigned to) {
  if (label == 0) return 0;
  Packed parts = unpack(label, bytes);
  for (unsigned i = std::min(bytes, to); i < 16; ++i) parts[i] = 0;
  return pack(parts, to);
}

Label ValueRecorder::shift(Label label, unsigned bytes, int bits) {
  if (label == 0 || bits % 8 != 0) return 0;
  const Packed parts = unpack(label, bytes);
  Packed out{};
  for (int i = 0; i < static_cast<int>(bytes); ++i) {
    const int from = i - bits / 8;
    if (from >= 0 && from < static_cast<int>(bytes))
      out[static_cast<unsigned>(i)] = parts[static_cast<unsigned>(from)];
  }
  return pack(out, bytes);
}

Label ValueRecorder::mask(Label label, unsigned bytes, std::uint64_t mask) {
  if (label == 0) return 0;
  Packed parts = unpack(label, bytes);
  for (unsigned i = 0; i < std::min(bytes, 8u); ++i)
    if ((mask >> (8 * i) & 0xFF) == 0) parts[i] = 0;
  return pack(parts, bytes);
}

Label ValueRecorder::merge(Site& site, std::uint32_t where, Label a, Label b, unsigned bytes) {
  if (a == 0 || b == 0) return a | b;
  Packed parts = unpack(a, bytes);
  const Packed others = unpack(b, bytes);
  bool apart = true;
  for (unsigned i = 0; i < 16; ++i) {
    apart = apart && (parts[i] == 0 || others[i] == 0);
    parts[i] |= others[i];
  }
  if (apart) return pack(parts, bytes);
  const auto whole = [](Label label) { return (label & kPacked) != 0 ? 0 : label; };
  return add(site, where, {whole(a), whole(b), 0}, 0);
}

Label ValueRecorder::join(Label low, Label high, unsigned low_bytes, unsigned high_bytes) {
  if ((low | high) == 0) return 0;
  Packed parts = unpack(low, low_bytes);
  const Packed others = unpack(high, high_bytes);
  for (unsigned i = 0; i < high_bytes && low_bytes + i < 16; ++i) parts[low_bytes + i] = others[i];
  return pack(parts, low_bytes + high_bytes);
}

Label ValueRecorder::as_number(Site& site, std::uint32_t where, Label label, unsigned bytes,
                               float number) {
  if (label == 0) return 0;
  if ((label & kPacked) == 0 && x_width[label] == bytes) return label;
  const Packed parts = unpack(label, bytes);
  // bfloat16 is the upper half of a float.
  if (bytes == 4 && parts[0] == 0 && parts[1] == 0) {
    const Label upper = parts[2] & kLabelMask;
    if (upper != 0 && x_width[upper] == 2 && parts[2] == upper &&
        parts[3] == (upper | 1u << kPartShift))
      return add(site, where, {upper, 0, 0}, number);
  }
  std::array<std::uint32_t, 3> operand{};
  unsigned count = 0;
  for (const std::uint32_t part : parts) {
    const Label of = part & kLabelMask;
    if (of != 0 && count < 3 && std::find(operand.begin(), operand.end(), of) == operand.end())
      operand[count++] = of;
  }
  return add(site, where, operand, number);
}

std::shared_ptr<ValueRecorder> make_value_recorder(const ValueOptions& options) {
  return std::make_shared<ValueRecorder>(options);
}

ValueGraph take_graph(ValueRecorder& recorder) { return recorder.take(); }

}  // namespace attn_diag::host
