package job

// Regions are the failover regions of the graph: sets of tasks that are connected by edges, whatever their direction. What a task has got from
// another, or given to it, is lost when one of the two is restarted, so the tasks of a region restart together; two regions share no record.
// A forward edge connects subtasks of the same number, every other one connects all subtasks of its ends. Every task is in one region. Tasks
// are in the order of Tasks, regions in the order of their first tasks.
func (g *Graph) Regions() [][]TaskID {
	tasks := g.Tasks()
	first := map[VertexID]int{}
	for at, t := range tasks {
		if t.Subtask == 0 {
			first[t.Vertex] = at
		}
	}
	parent := make([]int, len(tasks)) // the smallest task that is known to be connected, or itself
	for i := range parent {
		parent[i] = i
	}
	root := func(i int) int {
		for parent[i] != i {
			parent[i] = parent[parent[i]]
			i = parent[i]
		}
		return i
	}
	join := func(a, b int) {
		a, b = root(a), root(b)
		parent[max(a, b)] = min(a, b)
	}
	for _, e := range g.Edges {
		from, to := g.Vertex(e.From), g.Vertex(e.To)
		if e.Partitioning == Forward && from.Parallelism == to.Parallelism {
			for i := range from.Parallelism {
				join(first[e.From]+i, first[e.To]+i)
			}
			continue
		}
		for i := range from.Parallelism {
			join(first[e.From]+i, first[e.To])
		}
		for i := range to.Parallelism {
			join(first[e.From], first[e.To]+i)
		}
	}
	var out [][]TaskID
	number := map[int]int{}
	for i, t := range tasks {
		r := root(i)
		if r == i {
			number[i] = len(out)
			out = append(out, nil)
		}
		out[number[r]] = append(out[number[r]], t)
	}
	return out
}
