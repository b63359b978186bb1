// Runs parallel tasks under SimGrid's L07 host model, the one Batsim uses, and prints when each is done.
//
//   ptasks PLATFORM.xml < TASKS
//
// A line of TASKS is: name, start in seconds, number n of hosts, n host names, n amounts of flops, then 0 or n*n amounts
// of bytes (row sends to column), preceded by their number.
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include <simgrid/s4u.hpp>

namespace sg = simgrid::s4u;

struct Line {
  std::string name;
  double start = 0;
  std::vector<std::string> hosts;
  std::vector<double> flops;
  std::vector<double> bytes;
};

static Line parse(const std::string& text)
{
  std::istringstream in(text);
  Line line;
  size_t count = 0;
  in >> line.name >> line.start >> count;
  line.hosts.resize(count);
  line.flops.resize(count);
  for (auto& host : line.hosts)
    in >> host;
  for (auto& amount : line.flops)
    in >> amount;
  in >> count;
  line.bytes.resize(count);
  for (auto& amount : line.bytes)
    in >> amount;
  return line;
}

static void run(Line line)
{
  sg::this_actor::sleep_until(line.start);
  std::vector<sg::Host*> hosts;
  for (const auto& name : line.hosts)
    hosts.push_back(sg::Host::by_name(name));
  auto task = sg::this_actor::exec_init(hosts, line.flops, line.bytes);
  task->start();
  task->wait();
  std::printf("%s %.17g\n", line.name.c_str(), sg::Engine::get_clock());
}

int main(int argc, char* argv[])
{
  sg::Engine engine(&argc, argv);
  engine.set_config("host/model:ptask_L07");
  engine.load_platform(argv[1]);
  std::string text;
  while (std::getline(std::cin, text)) {
    Line line = parse(text);
    sg::Actor::create(line.name, sg::Host::by_name(line.hosts[0]), run, line);
  }
  engine.run();
  return 0;
}
