#include <fcntl.h>
#include <fmt/format.h>
#include <xxhash.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "attn_diag/harness/error.h"
#include "harness/base/pending_file.h"
#include "harness/sweep/folder.h"

namespace attn_diag::sweep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSchema = "attn-diag-sweep/1";

std::string plan_path(const std::string& folder) { return folder + "/sweep.json"; }

Json to_json(const Plan& plan) {
  Json j;
  j["schema"] = kSchema;
  j["version"] = plan.version;
  j["cases"] = plan.cases;
  j["random"] = plan.random;
  j["shards"] = plan.shards;
  j["flags"] = plan.flags;
  j["kernels"] = Json::array();
  for (const Plan::Kernel& kernel : plan.kernels)
    j["kernels"].push_back({{"name", kernel.name},
                            {"backend", kernel.backend},
                            {"note", kernel.note},
                            {"build_id", kernel.build_id}});
  return j;
}

Plan plan_of(const Json& j) {
  Plan plan;
  plan.version = j.at("version").get<std::string>();
  plan.cases = j.at("cases").get<std::int64_t>();
  plan.random = j.at("random").get<std::int64_t>();
  plan.shards = j.at("shards").get<std::int64_t>();
  plan.flags = j.at("flags").get<std::map<std::string, std::string>>();
  for (const Json& kernel : j.at("kernels"))
    plan.kernels.push_back(
        {kernel.at("name").get<std::string>(), kernel.at("backend").get<std::string>(),
         kernel.at("note").get<std::string>(), kernel.at("build_id").get<std::string>()});
  return plan;
}

std::string flag_text(const std::map<std::string, std::string>& flags, const std::string& flag) {
  const auto found = flags.find(flag);
  return found == flags.end() ? "not given" : found->second;
}

// What differs in `now`; empty: nothing.
std::string difference(const Plan& then, const Plan& now) {
  for (const auto* of : {&then, &now})
    for (const auto& [flag, value] : of->flags)
      if (flag_text(then.flags, flag) != flag_text(now.flags, flag))
        return fmt::format("{} was {} there and is {} here", flag, flag_text(then.flags, flag),
                           flag_text(now.flags, flag));
  if (then.random != now.random)
    return fmt::format("--random was {} there and is {} here", then.random, now.random);
  if (then.version != now.version)
    return fmt::format("it was begun by attn-diag {}, and this is {}", then.version, now.version);
  for (std::size_t i = 0; i < std::min(then.kernels.size(), now.kernels.size()); ++i) {
    const Plan::Kernel &a = then.kernels[i], &b = now.kernels[i];
    if (a.build_id != b.build_id)
      return fmt::format("{} has been built anew since (build id {} then, {} now)", a.name,
                         a.build_id, b.build_id);
    if (a.backend != b.backend)
      return fmt::format("{} ran on backend {} there and would on {} here; --backend says which",
                         a.name, a.backend, b.backend);
  }
  return then.key() == now.key() ? "" : "its cases are others";
}

}  // namespace

std::string hash_of(const std::string& text) {
  return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

std::string Plan::key() const {
  Json j = to_json(*this);
  j.erase("shards");
  for (Json& kernel : j["kernels"]) kernel.erase("note");
  return hash_of(j.dump());
}

std::optional<Plan> read_plan(const std::string& folder) {
  std::ifstream file(plan_path(folder));
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  try {
    const Json j = Json::parse(text.str());
    if (j.at("schema") != kSchema)
      throw Error(fmt::format(
          "{} has the schema {}, where {} was expected: another version of attn-diag wrote it.",
          plan_path(folder), j.at("schema").dump(), kSchema));
    return plan_of(j);
  } catch (const Json::exception& e) {
    throw Error(fmt::format("{} is no plan of a sweep: {}. Choose another folder.",
                            plan_path(folder), e.what()));
  }
}

Plan agree_on_plan(const std::string& folder, const Plan& plan) {
  std::error_code status;
  fs::create_directories(folder, status);
  if (!fs::is_directory(folder))
    throw Error(fmt::format("{} cannot be made a folder: {}.", folder,
                            status ? status.message() : "there is something else of this name"));
  std::optional<Plan> there = read_plan(folder);
  if (!there) {
    try {
      PendingFile file(plan_path(folder), false);
      std::ofstream out(file.temporary_path(), std::ios::trunc);
      out << to_json(plan).dump(2) << '\n';
      out.close();
      if (!out) throw Error(fmt::format("{} cannot be written.", plan_path(folder)));
      file.commit();
      return plan;
    } catch (const Error&) {  // another process was first?
      there = read_plan(folder);
      if (!there) throw;
    }
  }
  const std::string differs = difference(*there, plan);
  if (!differs.empty())
    throw Error(
        fmt::format("{} holds another sweep: {}. Choose another folder with -o.", folder, differs));
  return *there;
}

}  // namespace attn_diag::sweep
