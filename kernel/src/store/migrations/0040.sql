-- A schedule whose decided ticks lie in the future goes on from the corrected time; `ahead` keeps how far they went, so that no tick is made
-- twice. What was recomputed after the latest such correction, as JSON.
ALTER TABLE schedules ADD COLUMN ahead INTEGER;
ALTER TABLE meta ADD COLUMN clock_set TEXT CHECK (clock_set IS NULL OR json_valid(clock_set));
